module github.com/whystall/whystall/lab

go 1.26
