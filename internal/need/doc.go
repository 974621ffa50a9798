package need
