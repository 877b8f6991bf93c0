package main

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// somebody returns the person at the terminal, or at the other end of the pipe.
func somebody() person {
	if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		return newTerminal(os.Stdin, os.Stdout, os.Getenv("ACCESSIBLE") != "")
	}
	return newPipe(os.Stdin, os.Stdout)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// printable replaces what could act on a terminal or change what a person reads: control
// characters, with the escape sequences they begin, and those that turn the direction of the text.
// What a tool or a model wrote is never trusted to be only text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
