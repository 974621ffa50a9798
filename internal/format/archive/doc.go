// Package archive gives the files of an archive, a packed file or a folder, one after another.
// It knows each by its content: zip, tar, and gzip, zstd, xz and bzip2 around them or around a
// file. An archive in an archive is opened, one in that is not. It writes nothing to disk and
// follows no link, so names that lead out of the archive are only names.
//
// It refuses to spend without bounds: members, bytes and dictionaries have limits, each with an
// error that names it. What was read before a limit or damage counts.
//
// Files in reading order:
//
//	archive.go  Walk: files of an archive; the bounds
//	pack.go     gzip, zstd, xz, bzip2
//	xzframe.go  how large a dictionary an xz stream wants, before it gets it
//	zip.go      zip, by its directory or in order
//	zipdir.go   the directory and the headers of a zip, one member at a time
//	folder.go   Folder: files of a folder
package archive
