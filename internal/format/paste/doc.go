// Package paste turns what a person pasted into lines as the tool wrote them. It takes off what a
// chat, a ticket, a terminal or a logger put around them: fences, quotes, indentation, line
// numbers, prefixes of logs, colours. It keeps where each line stood. It does not know any tool's
// output.
//
// Files in reading order:
//
//	line.go     Line: one line, with what stood around it
//	lines.go    Lines: a paste to its lines, in five steps
//	decode.go   bytes to text; what only a terminal shows
//	blocks.go   fences, quotes, indentation
//	html.go     tags and entities of HTML
//	numbers.go  line numbers
//	prompt.go   prompts and their commands
//	logger.go   prefixes of loggers
//	procfile.go  of them: those of foreman and its like
//	foreignlog.go  of them: syslog's in other languages
//	inbars.go   of them: those between bars
//	paths.go    names of files before lines
//	records.go  records of JSON that were broken at a width
//	softbreaks.go  lines of mails in quoted-printable
//	views.go    Views: other readings of a paste of which little is known
//	comments.go  of them: output in comments and strings of source code
//	unrolled.go  of them: lines that a logger wrote into one
//	tabled.go   of them: tables of Markdown
//	tailed.go   names of pods, containers and hosts before lines
//	remarks.go  what a person wrote behind a tool's lines
//	pattern/    expressions that are compiled when first used
package paste
