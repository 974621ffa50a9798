package attach

import (
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Sort is what a range of lines is that no kind knows. Only an output that is not known keeps an
// answer from being given: what people write around outputs does not.
type Sort string

// Sorts.
const (
	SortOutput   Sort = "" // a tool's output, as far as can be told
	SortWords    Sort = "words"
	SortCode     Sort = "source code"
	SortConfig   Sort = "configuration"
	SortVersions Sort = "versions"
	SortFiles    Sort = "a list of files"
	SortLog      Sort = "lines of a log"
	SortLine     Sort = "a single line"      // without figures in columns
	SortRest     Sort = "the rest of a part" // such as a last row that is cut off, or a line above a table's heading
)

// sortOf says what lines are by themselves. known: something else in the file is known.
func sortOf(lines []paste.Line, known bool) Sort {
	lines = lines[:min(len(lines), maxGuess)]
	var n struct{ words, code, strong, config, versions, files, log, all int }
	for _, l := range lines {
		text := strings.TrimSpace(l.Text)
		n.all++
		switch {
		case fileLine.MatchString(text), pathLine.MatchString(text):
			n.files++
		case paste.IsCommand(uncommented(text)), ranWith.MatchString(text),
			len(strings.Fields(text)) >= leastWords && wordy(text):
			n.words++
		case clientWord.MatchString(text):
			n.words++
		case versionLine(text):
			n.versions++
		case codeLine.MatchString(text), codeLine.MatchString(beforeRemark(text)):
			n.code, n.strong = n.code+1, n.strong+1
		case configLine(text) && !trackerTag.MatchString(text):
			n.config++
		case logLine.MatchString(text) && !columns(text):
			n.log++
		case wordy(text):
			n.words++
		case bracket(text):
			n.code, n.config = n.code+1, n.config+1
		case codeAlso.MatchString(text):
			n.code++
		}
	}
	most := func(part int) bool { return part*3 >= n.all*2 }
	switch {
	case n.words == n.all, n.all == 1 && n.config == 1 && strings.HasSuffix(lines[0].Text, ":"):
		return SortWords
	case n.versions > 0 && most(n.versions+n.words):
		return SortVersions
	case n.files > 0 && most(n.files):
		return SortFiles
	case n.strong > 0 && most(n.code+n.words) && n.code > n.words:
		return SortCode
	case n.config >= 2 && most(n.config+n.words) && n.config > n.words:
		return SortConfig
	case n.words > 0 && most(n.words+n.versions+n.config):
		return SortWords
	case n.code == 0 && n.config == 0 && words(lines) && !stated(lines):
		return SortWords
	case known && n.log > 0 && n.all <= mostLog && most(n.log+n.words):
		return SortLog
	case known && n.all == 1 && !columns(lines[0].Text):
		return SortLine
	}
	return SortOutput
}

// stated reports whether most of several lines have figures, as a statistic's do.
func stated(lines []paste.Line) bool {
	n := 0
	for _, l := range lines {
		if strings.ContainsAny(l.Text, "0123456789") {
			n++
		}
	}
	return len(lines) > 1 && n*3 >= len(lines)*2
}

// leastWords is from how many words on a line is a sentence, however it starts.
const leastWords = 7

// mostLog is how many lines of a log of no kind are told apart from an output: a longer one is what
// somebody attached.
const mostLog = 10

var (
	// What ls -l prints.
	fileLine = pattern.New(`^(?:total \d+$|[-dlcbps][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-][.+@]? +\d+ )`)

	// The progress that curl prints beside its output, and answers of redis-cli that say nothing.
	clientWord = pattern.New(`^% Total +% Received % Xferd|^Dload +Upload +Total|^\d+ +\d\S* +\d+ +\d\S* .*(?:--|\d+):(?:--|\d\d):(?:--|\d\d) ` + `|^OK$|^\([\d.]+s\)$`)

	// What find prints, and a pattern of a shell.
	pathLine = pattern.New(`^/(?:[\w.@:+-]+/)+[\w.@:+-]*$`)

	// A program that is started with variables of the environment.
	ranWith = pattern.New(`^(?:[A-Z][A-Z0-9_]*=\S+ +)+(?:\./|/)[\w./-]+(?: .*)?$`)

	// Lines that start or end as those of a program do.
	codeLine = pattern.New(`^(?:CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|TRIGGER)\b.*|RETURNS [A-Za-z ]+|LANGUAGE \w+;?|AS \$\w*\$.*|\$\w*\$;?|DECLARE|BEGIN|END(?: LOOP| IF)?;|(?:FROM|WHERE|GROUP BY|ORDER BY|HAVING|LEFT JOIN|INNER JOIN|VALUES) .*|(?:func|def|class|fn|impl|struct|enum|interface|trait|namespace|template|type) [\w(<{"*&:].*[{:;(),=]|(?:import|package|using|use|mod|pub mod) [\w:./"'{}*()]+(?: as \w+)?;?|import \(|from \S+ import .*` +
		`|(?:public|private|protected|static|const|final|async|export|extern|inline|typedef|volatile|unsigned|void|int|let|var|val) [\w*&\[(].*[;{=(,)]` +
		`|#(?:include|define|ifdef|ifndef|endif|if|else|pragma)\b.*|#!/.*|@(?:Override|Test|Bean|Autowired|Component)\b.*` +
		`|(?:if|for|while|switch|elif|else if|with|try|catch|except|foreach|match|unless|until)\b.*\{|for \w+(?:, \w+)* in .*|(?:if|while|elif|with|except)\b.*[=()<>\[\]].*(?::|then)|(?:try|finally):|(?:\} ?)?else ?[{:]|(?:return|throw|raise|yield|defer|go|await|new|delete|assert|panic)\b[^:]*[;)}]` +
		`|(?i:select|insert|update|delete|create|alter|drop|explain|with|set|use|show|begin|commit|prepare|execute|analyze|truncate|grant) .*;` +
		`|(?i:select|insert into|create table|alter table|explain(?: analyze)?(?: select)?|delete from) .*` +
		`|(?:[A-Z_]+=\S+ )+[\w./-]+.*|(?:export|local|declare|source|set -[a-z]) ?\S+.*|(?:fi|done|esac|then|do|end|endif)$|[\w.\[\]*>-]+(?:, [\w.]+)* :?= [\w.&*]+[({].*` +
		`|var \w+ [\w.*\[\]]+$|[\w.]+(?:, [\w.]+)* := .*|(?:[\w.]+|\w+(?:->|::)\w+)\([^=]*\);|.*\) ?(?:=>|->)? ?\{|\w[\w.\[\]]* [-+*/|]?= [^=].*;|(?://|/\*|\*/).*)$`)

	// Lines that stand among such lines, and elsewhere too.
	codeAlso = pattern.New(`^(?:\w+(?:\.\w+)*\([^)]*\)(?:\.\w+\([^)]*\))*[,;]?|[\w.]+ [-+*/]?= .*|[\w."']+,|.*[;{(]|\) ?[,;]?|return\b.*|\w+ [-+*/] \w+)$`)

	logLine = pattern.New(`^[\[(]?(?:[A-Z][a-z]{2} )?(?:\d{4}[-/.]\d\d[-/.]\d\d[T ,]|\d\d/[A-Z][a-z]{2}/\d{4}[: ]|[A-Z][a-z]{2} [ \d]\d (?:\d{4} )?)?\d\d:\d\d:\d\d\b.*[A-Za-z]{3}` +
		`|^\[\w+\] \d{4}[-/]\d\d[-/]\d\d |^(?:\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|SEVERE)\]?)[: ]`)
)

// beforeRemark is a line of a program without the comment behind it.
func beforeRemark(text string) string {
	before, _, _ := strings.Cut(text, " // ")
	return strings.TrimSpace(before)
}

// bracket reports whether a line only opens or closes something.
func bracket(text string) bool { return text != "" && strings.Trim(text, "{}[]();,") == "" }

var (
	aVersion = pattern.New(`(?:^|[\s"'=:(/@_v-])v?\d{1,4}\.\d{1,4}(?:\.[\dx]{1,5}){0,3}(?:[-+~_][\w.+~-]+)?(?:$|[\s"',;:)|])`)
	variable = pattern.New(`^(?:export |set )?[A-Z][A-Z0-9_]{2,40}=(?:"[^"]*"|'[^']*'|\S*)$`)
	release  = pattern.New(`^(?:go version go|Linux \S+ \d+\.\d+\.|Darwin \S+ \d|Distributor ID:|No LSB modules|Codename:|Client Version:|Server Version:|Kustomize Version:` +
		`|(?:NAME|VERSION|ID|ID_LIKE|PRETTY_NAME|VERSION_ID|VERSION_CODENAME|HOME_URL|BUG_REPORT_URL|SUPPORT_URL|CPE_NAME)=|git version |openjdk version|java version|OpenJDK |Java HotSpot|Memory: \d+k page|CommandLine flags:|gcc \(|rustc \d` +
		`|Docker version |docker-compose version|Python \d|node v?\d|npm \d|\w[\w.-]{0,20} v?\d+\.\d+\.\d+\S*$|v?\d+\.\d+\.\d+\S*$)`)
	toolHead = pattern.New(`^# [a-z][a-z ]* ?: \S`) // what perf says of the machine
	product  = pattern.New(`(?i)\b(?:ubuntu|debian|centos|rhel|red hat|fedora|alpine|amazon linux|suse|arch linux|windows|macos|darwin|linux/amd64|linux/arm64|x86_64|aarch64|amd64|arm64|version|kernel|jdk|jvm)\b`)
	field    = pattern.New(`^[-*•+]? ?[*_]{0,2}[A-Za-z][\w ./()\x60-]{0,40}[*_]{0,2} ?[:=|][*_]{0,2} *(\S.*)?$`)
)

// versionLine reports whether a line says of which version something is, or how a tool was built.
func versionLine(text string) bool {
	if len(text) > 400 || columns(text) {
		return false
	}
	if release.MatchString(text) || toolHead.MatchString(text) || variable.MatchString(text) {
		return true
	}
	plain := strings.Trim(uncommented(text)+" ", "* ")
	if m := field.FindStringSubmatch(text); m != nil && len(text) < 160 {
		return aVersion.MatchString(m[1]) &&
			(product.MatchString(text) || strings.Count(text, ".") > 1) || product.MatchString(m[1]) && len(m[1]) < 60
	}
	return len(plain) < 60 && aVersion.MatchString(plain) && product.MatchString(plain)
}

var (
	yamlField  = pattern.New(`^(?:- )?["']?[A-Za-z_][\w./-]{0,60}["']?: *(\S.*)?$`)
	jsonField  = pattern.New(`^"[^"]{1,80}" ?: ?(.*?),?$`)
	iniField   = pattern.New(`^[A-Za-z_][\w.-]{1,60} ?= ?(\S.*)$`)
	iniSection = pattern.New(`^\[{1,2}[A-Za-z][\w. "-]{0,40}\]{1,2}$`)
	listItem   = pattern.New(`^- ["']?[A-Za-z/.-][^ :]*["']?$`)
	option     = pattern.New(`^(?:- )?["']?--?[a-z][\w-]+(?:[ =]\S+)?["']?[,\\]?(?: \\)?$`)
	xmlTag     = pattern.New(`^</?[A-Za-z][\w:.-]*(?: [^<>]*)?/?>(?:[^<>]*</[\w:.-]+>)?$`)
)

// configLine reports whether a line sets something. Numbers of a counter do not: a configuration
// has some, and a statistic nothing else.
func configLine(text string) bool {
	value := ""
	switch {
	case iniSection.MatchString(text), listItem.MatchString(text), option.MatchString(text),
		xmlTag.MatchString(text), text == "---":
		return true
	case jsonField.MatchString(text):
		value = jsonField.FindStringSubmatch(text)[1]
	case yamlField.MatchString(text):
		value = yamlField.FindStringSubmatch(text)[1]
	case iniField.MatchString(text):
		value = iniField.FindStringSubmatch(text)[1]
	default:
		return false
	}
	return !figure(value) && !columns(value)
}

// figure reports whether a value is a number, with or without a unit: what a statistic holds.
func figure(value string) bool {
	value = strings.Trim(value, `"', `)
	return value != "" && value[0] >= '0' && value[0] <= '9' && !strings.ContainsAny(value, ":/")
}

// columns reports whether a line has columns of figures, as tools print them.
func columns(text string) bool {
	gaps, figures := 0, 0
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == '\t' || r == '|' }) {
		gaps += strings.Count(strings.TrimSpace(f), "  ")
	}
	gaps += strings.Count(strings.Trim(text, "\t |"), "\t") + strings.Count(strings.Trim(text, "\t |"), "|")
	for _, f := range strings.Fields(text) {
		if strings.Trim(f, "0123456789.,%kKMGTmsu-") == "" && f != "-" {
			figures++
		}
	}
	return gaps >= 2 && figures >= 2
}

var (
	quotedCode = pattern.New("`[^`]{1,200}`")
	mdLink     = pattern.New(`!?\[([^\]]*)\]\([^)]*\)|!?\[([^\]]*)\]\[[^\]]*\]|\[[^\]]+\]: \S+`)
	anAddress  = pattern.New(`(?:https?|ftp)://\S+|\S+@\S+\.\w+`)
	htmlTag    = pattern.New(`</?[a-zA-Z][^<>]{0,300}>|<!--.*?-->|\{\{[<%].*?[>%]\}\}`)
	trackerTag = pattern.New(`^</?(?i:details|summary|img|a|br|p|div|table|tr|td|th|ul|ol|li|h[1-6]|b|i|hr|span|font|sub|sup|center)\b[^<>]*>`)
	sentences  = pattern.New(`([.?!:;,)])  +`)
	checkbox   = pattern.New(`^(?:[-*+•] ?)?\[[ xX]\] `)
	terminal   = pattern.New(`^(?:\[\d+\][+-]?\s*(?:\d+|Stopped|Done|Running|Terminated|Killed|Exit.*|[A-Z]\w+  .*)?|=== (?:RUN|PAUSE|CONT|NAME).*|--- (?:PASS|FAIL|SKIP): .*|PASS|FAIL|ok  ?\t.*)$`)
	aTime      = pattern.New(`^[\[(]?(?:\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?|\d{4}[-/.]\d\d?[-/.]\d\d?|(?:19|20)\d\d|\d\d?[-/.]\d\d?[-/.]\d{4})[\]).,:;]*$`)
	listMark   = pattern.New(`^(?:[-*+•>#|]+|\d{1,2}[.)]) +`)
)

// wordy reports whether a line is what a person wrote, with all that is set into words in a ticket:
// code, links, images, tags, names of files, figures.
func wordy(text string) bool {
	if text == "" || len(text) > 20000 {
		return false
	}
	if terminal.MatchString(text) {
		return true
	}
	rest := checkbox.ReplaceAllString(text, "")
	rest = htmlTag.ReplaceAllString(rest, " ")
	rest = mdLink.ReplaceAllString(rest, "${1}${2}")
	rest = quotedCode.ReplaceAllString(rest, "code")
	rest = anAddress.ReplaceAllString(rest, "address")
	for range 3 {
		rest = listMark.ReplaceAllString(strings.TrimSpace(rest), "")
	}
	rest = sentences.ReplaceAllString(strings.Trim(rest, "*_#=- \t"), "$1 ")
	if rest == "" {
		return true // marks, an image or tags alone
	}
	if columns(rest) {
		return false
	}
	plain, wide, all := 0, 0, 0
	for _, w := range strings.Fields(rest) {
		if aTime.MatchString(w) {
			continue
		}
		all++
		switch {
		case strings.IndexFunc(w, eastern) >= 0:
			wide++
		case letterWord(w):
			plain++
		}
	}
	if wide > 0 {
		return (wide+plain)*2 >= all
	}
	gap := strings.Contains(rest, "  ") || strings.Contains(rest, "\t")
	switch {
	case all <= 3:
		return plain == all && all > 0 && !gap
	case gap && legend(rest):
		return true
	case gap:
		return plain >= 8 && plain*4 >= all*3
	}
	return plain*5 >= all*3
}

// legend reports whether a line says what a name or a mark means: a sentence behind a gap, and no
// figures.
func legend(text string) bool {
	_, said, _ := strings.Cut(strings.ReplaceAll(text, "\t", "  "), "  ")
	said = strings.TrimSpace(said)
	if strings.ContainsAny(text, "0123456789%") || strings.Contains(said, "  ") {
		return false
	}
	words := strings.Fields(said)
	for _, w := range words {
		if !letterWord(w) {
			return false
		}
	}
	return len(words) >= 5
}

func eastern(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// letterWord reports whether a word is made of letters, with marks around it.
func letterWord(w string) bool {
	w = strings.Trim(w, `.,;:!?"'()[]*_<>~`)
	letters := 0
	for _, r := range w {
		switch {
		case unicode.IsLetter(r):
			letters++
		case r != '\'' && r != '-' && r != '/':
			return false
		}
	}
	return letters > 0 && !strings.Contains(w, "--") // a rule in a table's heading
}
