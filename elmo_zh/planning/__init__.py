"""What a corpus will take, told from a sample before anything is paid for, and compared with the truth afterwards."""
