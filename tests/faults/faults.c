/* Faults in the system calls of one process, for tests. Loaded with LD_PRELOAD; does nothing before faults_arm().

   Calls are counted if they touch a path below one folder. At the chosen call the process is killed, or the call fails,
   or every call from it on fails as on a full disk.

   A file descriptor is looked up in /proc at each call, so copies of it need no bookkeeping. Most real calls are made
   by number, not through the C library, as this library has their names. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, FAIL, FULL, KILL };
enum { READS, SYNCS, WRITES, NEEDS_SPACE };
enum { DIE = -1 };

/* Shared with the process that forks the armed one, which reads it afterwards. */
struct state {
    long num_met[4], num_calls, num_fired;
    char call[24], path[PATH_MAX];
};
static struct state *state;
static int kind = COUNT, armed;
static long chosen;
static char folder[PATH_MAX];
static size_t folder_length;
static void (*tell)(const char *call, int need);

__attribute__((constructor)) static void share(void) {
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

struct state *faults_state(void) { return state; }

void faults_reset(void) { memset(state, 0, sizeof *state); }

/* Have a function called at each call that is counted, in the thread that makes it. */
void faults_watch(void (*function)(const char *call, int need)) { tell = function; }

/* Begin, in this process and those that it forks. */
void faults_arm(const char *below, int what, long at) {
    snprintf(folder, sizeof folder, "%s", below);
    folder_length = strlen(folder);
    kind = what, chosen = at, armed = 1;
}

static int is_below(const char *path) {
    return !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

static int path_of(int fd, char *path) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Whether an open file is below the folder; its path. The error number stays as it is. */
static int watches(int fd, char *path) {
    int before = errno, found = armed && fd >= 0 && path_of(fd, path) && is_below(path);
    errno = before;
    return found;
}

/* The same for a name, perhaps in an open folder. */
static int watches_name(int at, const char *name, char *path) {
    int before = errno;
    if (!armed || !name)
        return 0;
    if (name[0] == '/')
        snprintf(path, PATH_MAX, "%s", name);
    else {
        char base[PATH_MAX];
        if (at == AT_FDCWD) {
            if (syscall(SYS_getcwd, base, sizeof base) < 0)
                base[0] = 0;
        } else
            path_of(at, base);
        snprintf(path, PATH_MAX, "%.2000s/%.2000s", base, name);
    }
    errno = before;
    return is_below(path);
}

static void die(void) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;)
        pause();
}

/* Count a call. Return 0 if it goes on, DIE, or the error with which it fails. */
static int meet(const char *call, const char *path, int need) {
    __atomic_add_fetch(&state->num_met[need], 1, __ATOMIC_SEQ_CST);
    if (tell) {
        int before = errno;
        tell(call, need);
        errno = before;
    }
    /* A process that is killed leaves the same before a read as after the write that came first. */
    if ((kind == FULL && (need == READS || need == WRITES)) || (kind == KILL && need < WRITES))
        return 0;
    long number = __atomic_add_fetch(&state->num_calls, 1, __ATOMIC_SEQ_CST);
    if (kind == COUNT || (kind == FULL ? number < chosen : number != chosen))
        return 0;
    if (!state->num_fired++) {
        snprintf(state->call, sizeof state->call, "%s", call);
        snprintf(state->path, sizeof state->path, "%s", path);
    }
    return kind == KILL ? DIE : kind == FULL ? ENOSPC : EIO;
}

static int fails(const char *call, const char *path, int need) {
    int error = meet(call, path, need);
    if (error == DIE)
        die();
    if (error)
        errno = error;
    return error;
}

static uint64_t inode_at(const char *path) {
    struct stat found;
    return lstat(path, &found) ? 0 : found.st_ino;
}

/* Files */

static int open_at(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!watches_name(at, name, path))
        return syscall(SYS_openat, at, name, flags, mode);
    int writes = (flags & O_ACCMODE) != O_RDONLY, creates = flags & O_CREAT && !inode_at(path);
    if (fails("open", path, creates ? NEEDS_SPACE : writes ? WRITES : READS))
        return -1;
    return syscall(SYS_openat, at, name, flags, mode);
}

#define MODE                                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode = va_arg(more, int);                                                                                      \
        va_end(more);                                                                                                  \
    }
int open(const char *name, int flags, ...) { MODE return open_at(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE return open_at(AT_FDCWD, name, flags, mode); }
int openat(int at, const char *name, int flags, ...) { MODE return open_at(at, name, flags, mode); }
int openat64(int at, const char *name, int flags, ...) { MODE return open_at(at, name, flags, mode); }
int __open_2(const char *name, int flags) { return open_at(AT_FDCWD, name, flags, 0); }
int __open64_2(const char *name, int flags) { return open_at(AT_FDCWD, name, flags, 0); }
int creat(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *name, mode_t mode) { return creat(name, mode); }

int close(int fd) {
    char path[PATH_MAX];
    int error = 0;
    if (watches(fd, path) && (syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
        error = fails("close", path, SYNCS);
    int result = syscall(SYS_close, fd);
    if (!error)
        return result;
    errno = error;
    return -1;
}

/* A process that is killed while it writes has written a part. */
static ssize_t write_or_part(const char *call, int fd, const void *data, size_t size, off_t offset) {
    char path[PATH_MAX];
    int error = watches(fd, path) ? meet(call, path, NEEDS_SPACE) : 0;
    if (error && error != DIE) {
        errno = error;
        return -1;
    }
    size_t part = error == DIE ? size / 2 : size;
    ssize_t result = offset < 0 ? syscall(SYS_write, fd, data, part) : syscall(SYS_pwrite64, fd, data, part, offset);
    if (error == DIE)
        die();
    return result;
}

ssize_t write(int fd, const void *data, size_t size) { return write_or_part("write", fd, data, size, -1); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return write_or_part("pwrite", fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return write_or_part("pwrite", fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!watches(fd, path))
        return syscall(SYS_writev, fd, parts, count);
    /* Fewer bytes than asked for are no error: the caller goes on with the rest. */
    for (int each = 0; each < count; each++)
        if (parts[each].iov_len)
            return write_or_part("writev", fd, parts[each].iov_base, parts[each].iov_len, -1);
    return 0;
}

#define READ_CALL(name, parameters, number, ...)                                                            \
    ssize_t name parameters {                                                                                          \
        char path[PATH_MAX];                                                                                           \
        if (watches(fd, path) && fails(#name, path, READS))                                                            \
            return -1;                                                                                                 \
        return syscall(number, fd, __VA_ARGS__);                                                                       \
    }
READ_CALL(read, (int fd, void *data, size_t size), SYS_read, data, size)
READ_CALL(pread, (int fd, void *data, size_t size, off_t at), SYS_pread64, data, size, at)
READ_CALL(pread64, (int fd, void *data, size_t size, off_t at), SYS_pread64, data, size, at)
READ_CALL(readv, (int fd, const struct iovec *parts, int count), SYS_readv, parts, count)

/* Copies within the kernel. */
static int fails_copy(const char *call, int fd) {
    char path[PATH_MAX];
    return watches(fd, path) && fails(call, path, NEEDS_SPACE);
}
ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    return fails_copy("sendfile", to) ? -1 : syscall(SYS_sendfile, to, from, offset, size);
}
ssize_t sendfile64(int to, int from, off_t *offset, size_t size) { return sendfile(to, from, offset, size); }
ssize_t copy_file_range(int from, off_t *start, int to, off_t *place, size_t size, unsigned flags) {
    return fails_copy("copy_file_range", to) ? -1 : syscall(SYS_copy_file_range, from, start, to, place, size, flags);
}

int ftruncate(int fd, off_t size) {
    char path[PATH_MAX];
    if (watches(fd, path) && fails("ftruncate", path, NEEDS_SPACE))
        return -1;
    return syscall(SYS_ftruncate, fd, size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }
int truncate(const char *name, off_t size) {
    char path[PATH_MAX];
    if (watches_name(AT_FDCWD, name, path) && fails("truncate", path, NEEDS_SPACE))
        return -1;
    return syscall(SYS_truncate, name, size);
}
int truncate64(const char *name, off_t size) { return truncate(name, size); }

/* The real call is left out: no test cuts the power, and it takes long. */
static int sync_file(const char *call, int fd, int number) {
    char path[PATH_MAX];
    if (!watches(fd, path))
        return syscall(number, fd);
    return fails(call, path, SYNCS) ? -1 : 0;
}
int fsync(int fd) { return sync_file("fsync", fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file("fdatasync", fd, SYS_fdatasync); }

static void *map(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    char path[PATH_MAX];
    if (watches(fd, path) && fails("mmap", path, READS))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, access, flags, fd, offset);
}
void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    return map(at, size, access, flags, fd, offset);
}
void *mmap64(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    return map(at, size, access, flags, fd, offset);
}

/* Names */

static int rename_at(int from, const char *old, int to, const char *new, unsigned flags) {
    char path[PATH_MAX], other[PATH_MAX];
    if (watches_name(from, old, path) & watches_name(to, new, other) && fails("rename", other, NEEDS_SPACE))
        return -1;
    return syscall(SYS_renameat2, from, old, to, new, flags);
}
int rename(const char *old, const char *new) { return rename_at(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return rename_at(from, old, to, new, 0); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return rename_at(from, old, to, new, flags);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    char path[PATH_MAX], other[PATH_MAX];
    if (watches_name(from, old, path) & watches_name(to, new, other) && fails("link", other, NEEDS_SPACE))
        return -1;
    return syscall(SYS_linkat, from, old, to, new, flags);
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int symlinkat(const char *target, int to, const char *name) {
    char path[PATH_MAX];
    if (watches_name(to, name, path) && fails("symlink", path, NEEDS_SPACE))
        return -1;
    return syscall(SYS_symlinkat, target, to, name);
}
int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }

int unlinkat(int at, const char *name, int flags) {
    char path[PATH_MAX];
    if (watches_name(at, name, path) && fails(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path, WRITES))
        return -1;
    return syscall(SYS_unlinkat, at, name, flags);
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int at, const char *name, mode_t mode) {
    char path[PATH_MAX];
    /* On an existing folder the call would fail anyhow. */
    if (watches_name(at, name, path) && !inode_at(path) && fails("mkdir", path, NEEDS_SPACE))
        return -1;
    return syscall(SYS_mkdirat, at, name, mode);
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

/* The C library's own files and lists of folders: it does not call the functions above. */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static FILE *open_file(const char *name, const char *mode, FILE *(*real)(const char *, const char *)) {
    char path[PATH_MAX];
    int writes = !!strpbrk(mode, "wa+"), is_watched = watches_name(AT_FDCWD, name, path);
    int creates = is_watched && writes && !inode_at(path);
    if (is_watched && fails("fopen", path, creates ? NEEDS_SPACE : writes ? WRITES : READS))
        return NULL;
    return real(name, mode);
}
FILE *fopen(const char *name, const char *mode) { return open_file(name, mode, REAL(fopen)); }
FILE *fopen64(const char *name, const char *mode) { return open_file(name, mode, REAL(fopen64)); }

size_t fread(void *data, size_t size, size_t count, FILE *file) {
    char path[PATH_MAX];
    if (watches(fileno(file), path) && fails("fread", path, READS))
        return 0;
    return REAL(fread)(data, size, count, file);
}

/* What is written goes to the system at once, so that it counts as one call there. Of a few bytes that cannot be written
   the C library tells only when the file is closed. */
static FILE *unwritten;
size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    char path[PATH_MAX];
    if (!watches(fileno(file), path))
        return REAL(fwrite)(data, size, count, file);
    int error = meet("fwrite", path, NEEDS_SPACE);
    if (error && error != DIE) {
        errno = error;
        return size * count < BUFSIZ ? (unwritten = file, count) : 0;
    }
    size_t written = REAL(fwrite)(data, size, error == DIE ? count / 2 : count, file);
    fflush(file);
    if (error == DIE)
        die();
    return written;
}

int fclose(FILE *file) {
    int is_whole = file != unwritten, result = REAL(fclose)(file);
    if (is_whole)
        return result;
    unwritten = NULL;
    errno = kind == FULL ? ENOSPC : EIO;
    return EOF;
}

DIR *opendir(const char *name) {
    char path[PATH_MAX];
    return watches_name(AT_FDCWD, name, path) && fails("opendir", path, READS) ? NULL : REAL(opendir)(name);
}
DIR *fdopendir(int fd) {
    char path[PATH_MAX];
    return watches(fd, path) && fails("opendir", path, READS) ? NULL : REAL(fdopendir)(fd);
}
