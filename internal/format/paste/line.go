package paste

import "time"

// Line is one line of a paste, as the tool that made it wrote it.
type Line struct {
	N    int    // where it stood, from 1
	Text string // without what was put around it, and without blanks at its end

	// Raw is the line with the prefix that was taken for a logger's or a grep's; "": none was taken
	// off. Some tools start their own lines in this way. So who does not know Text looks at Raw.
	Raw string

	Block   int       // lines of one fence, quote or indentation have the same number; 0: plain text
	Elided  bool      // it stood for lines that the person left out: "...". Text is empty
	Command string    // Text is a prompt and this command: what follows is its output
	Host    string    // of the prompt; "": it names none
	Path    string    // the file that a grep's prefix names; "": none
	Source  string    // the container, pod, unit or host that a logger's prefix names; "": none
	PID     int       // of the process that a logger's prefix names; 0: none
	Time    time.Time // of a logger's prefix; zero: none. Without a zone it is taken as UTC
}
