module github.com/whystall/whystall/bench

go 1.26
