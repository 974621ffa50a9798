module server

go 1.13
