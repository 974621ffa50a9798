// Package pattern has regular expressions that are compiled when they are first used. The kinds of
// pastes have some 900. A recorder that starts on a busy machine needs none of them, and to compile
// all took 40 ms of CPU time.
package pattern

import (
	"regexp"
	"sync"
	"testing"
)

// Regexp is a regexp.Regexp that is compiled when it is first used.
type Regexp struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New gives an expression. One that does not compile panics: in a test at once, else when it is
// first used.
func New(text string) *Regexp {
	r := &Regexp{text: text}
	if testing.Testing() {
		r.get()
	}
	return r
}

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.text) })
	return r.re
}

// MatchString is that of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

// FindString is that of regexp.Regexp.
func (r *Regexp) FindString(s string) string { return r.get().FindString(s) }

// FindStringIndex is that of regexp.Regexp.
func (r *Regexp) FindStringIndex(s string) []int { return r.get().FindStringIndex(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// FindStringSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatchIndex(s string) []int { return r.get().FindStringSubmatchIndex(s) }

// FindAllString is that of regexp.Regexp.
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }

// FindAllStringIndex is that of regexp.Regexp.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int { return r.get().FindAllStringIndex(s, n) }

// FindAllStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is that of regexp.Regexp.
func (r *Regexp) ReplaceAllString(s, by string) string { return r.get().ReplaceAllString(s, by) }

// ReplaceAllStringFunc is that of regexp.Regexp.
func (r *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, by)
}

// Split is that of regexp.Regexp.
func (r *Regexp) Split(s string, n int) []string { return r.get().Split(s, n) }

// SubexpIndex is that of regexp.Regexp.
func (r *Regexp) SubexpIndex(name string) int { return r.get().SubexpIndex(name) }
