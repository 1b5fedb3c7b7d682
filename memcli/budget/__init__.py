"""What a prompt will hold under some settings, worked out without a model. Pure: it is given what counts tokens."""
