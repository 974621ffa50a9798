// Package format is the one parser of each format: bytes to records, whoever brought the bytes, known by their content.
// It opens no file and asks no clock, and refuses to guess: what is missing gives no record, what is damaged an error beside
// what could be read.
package format
