module github.com/whystall/whystall

go 1.26
