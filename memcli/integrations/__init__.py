"""What ties mem to other libraries, each behind its own optional extra and imported where it is used."""
