package paste

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decode turns bytes into UTF-8 with \n at the end of lines.
func decode(data []byte) string {
	if order := utf16Order(data); order != nil {
		data = fromUTF16(data, order)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	text := string(data)
	if !utf8.ValidString(text) {
		text = fromLatin1(text)
	}
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\r\n", "\n"), "\r\n", "\n")
		if strings.IndexByte(text, '\n') < 0 {
			text = strings.ReplaceAll(text, "\r", "\n")
		}
	}
	return text
}

// UTF16 reports whether a text has two bytes for each character of ASCII. Its start is enough.
func UTF16(data []byte) bool { return utf16Order(data) != nil }

// utf16Order is the order of a text's pairs of bytes, by its mark, or by where zeros stand; nil: it
// is no UTF-16.
func utf16Order(data []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), zeros(data, 1):
		return binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")), zeros(data, 0):
		return binary.BigEndian
	}
	return nil
}

// zeros reports whether most bytes at odd places (or at even ones, with 0) are zero, and nearly
// none of the others: ASCII as UTF-16 that lost its mark.
func zeros(data []byte, odd int) bool {
	data = data[:min(len(data), 1024)]
	if len(data) < 8 {
		return false
	}
	count := [2]int{}
	for i, b := range data {
		if b == 0 {
			count[i&1]++
		}
	}
	half := len(data) / 2
	return count[odd] > half*8/10 && count[1-odd] <= half/10+1
}

func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	out := make([]byte, 0, len(data))
	for len(data) >= 2 {
		r := rune(order.Uint16(data))
		data = data[2:]
		if utf16.IsSurrogate(r) && len(data) >= 2 {
			if whole := utf16.DecodeRune(r, rune(order.Uint16(data))); whole != utf8.RuneError {
				r, data = whole, data[2:]
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// fromLatin1 reads each byte that is not UTF-8 as the Latin-1 character.
func fromLatin1(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			r = rune(text[i])
		}
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

// plain takes off what only a terminal or a chat shows: colours, titles of windows, what was
// overwritten, spaces that are none.
func plain(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	if odd := strings.IndexFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' || r >= 0x7f && (special(r) || typeset[r] != "" || r == '→')
	}); odd < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] == 0x1b {
			i += escape(text[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case r == '\b': // man and nroff write bold as x\bx
			s := b.String()
			_, last := utf8.DecodeLastRuneInString(s)
			b.Reset()
			b.WriteString(s[:len(s)-last])
		case r == '\r': // a progress line: the last writing counts
			b.Reset()
		case typeset[r] != "":
			b.WriteString(typeset[r])
		case r == '→' && betweenDigits(text, i-n, i):
			b.WriteString("->")
		case r == '\t' || r >= ' ' && !special(r):
			b.WriteRune(r)
		case r == 0xa0 || r == 0x2007 || r == 0x202f || r == 0x3000:
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " \t")
}

// typeset are characters that chats, wikis and blogs put in the place of what was typed.
var typeset = map[rune]string{'“': `"`, '”': `"`, '„': `"`, '‘': "'", '’': "'", '—': "---", '–': "--", '−': "-"}

// betweenDigits reports whether digits stand on both sides of text[from:to], as in gctrace's 4->5.
func betweenDigits(text string, from, to int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	return digit(from-1) && digit(to)
}

// special reports whether r is a space that is none, or a character without a width.
func special(r rune) bool {
	switch r {
	case 0x7f, 0xa0, 0x2007, 0x202f, 0x3000, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2060, 0xfeff:
		return true
	}
	return r >= 0x80 && r < 0xa0
}

// escape is the length of the terminal's escape sequence that text starts with.
func escape(text string) int {
	if len(text) < 2 {
		return 1
	}
	switch text[1] {
	case '[': // CSI: parameters, then one byte from @ on
		for i := 2; i < len(text); i++ {
			if c := text[i]; c >= 0x40 && c <= 0x7e {
				return i + 1
			} else if c < 0x20 || c > 0x7e {
				return i
			}
		}
		return len(text)
	case ']': // OSC: to BEL or ESC \
		for i := 2; i < len(text); i++ {
			if text[i] == 7 {
				return i + 1
			}
			if text[i] == 0x1b {
				return min(i+2, len(text))
			}
		}
		return len(text)
	case '(', ')', '#', '%':
		return min(3, len(text))
	}
	return 2
}
