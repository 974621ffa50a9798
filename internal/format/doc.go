package format
