#!/bin/sh
# Build the wheels and source archives of elmo-zh and its starter model in dist/, and check them with twine. Uploads
# nothing. The tools go into an environment of their own, so that .venv stays as the tests know it.
set -eu

TOOLS=build/release

if [ -n "$(git status --porcelain 2>/dev/null)" ]; then
    echo 'Error: there are uncommitted changes, which would go into the release. Commit or remove them first.' >&2
    exit 1
fi
rm -rf dist
[ -x "$TOOLS/bin/twine" ] || {
    "${VENV:-.venv}/bin/python" -m venv "$TOOLS"
    "$TOOLS/bin/pip" install -q build==1.6.1 twine==7.0.0
}
for project in . data/starter; do
    "$TOOLS/bin/python" -m build -q --outdir dist "$project"
done
"$TOOLS/bin/twine" check --strict dist/*
echo 'To publish these files, tag the commit and type:'
echo "  git tag v$(sed -n 's/^__version__ = "\(.*\)"/\1/p' elmo_zh/version.py)"
echo "  $TOOLS/bin/twine upload dist/*"
