"""Foreign transcripts, one file for each format; each offers one `Reader`."""
