// Package browser opens pages in a headless Chromium, for tests alone: it clicks and types as a
// person would, keeps what went wrong, and takes screenshots. It refuses to know what is on a page.
//
// The files in reading order:
//
//	browser.go   starts Chromium, opens a file, asks, clicks, types
//	compare.go   screenshots against goldens, with a tolerance
package browser
