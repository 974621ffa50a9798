// Package books keeps the accounts of one recording: it numbers them, decides which units of work are kept as slow or as
// usual, adds up the columns, and writes them down as plain data. It does not know what an actor is, a goroutine or a
// thread: whoever walks them names what it numbers ([Names], [Runtime]). It explains nothing.
//
// In reading order: books.go (the books, and what one unit adds), code.go (leaves, accounts and facts by number), keep.go (who
// is kept, and the column of all), histogram.go, choose.go (who is slow), columns.go, write.go (columns in words) and
// locks.go (what is lost behind a lock).
package books
