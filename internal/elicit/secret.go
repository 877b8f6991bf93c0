package elicit

import (
	"slices"
	"strings"
	"unicode"

	"github.com/parley-go/parley/interrupt"
)

// Words that name a secret wherever they stand, and pairs of words that do, also more than one of
// it; and those that do at the end of a name ("token", but not "token count").
var (
	secretWords = []string{
		"password", "passwd", "pwd", "passphrase", "passcode", "secret", "credential", "cvv", "cvc", "apikey",
	}
	secretLast  = []string{"token", "pin", "otp"}
	secretPairs = []string{
		"api key", "access key", "private key", "secret key", "signing key", "encryption key", "access token", "auth token",
		"bearer token", "refresh token", "card number", "credit card", "debit card", "security code", "pass word", "pin code",
	}
)

// AsksForSecret reports whether a field asks for what MCP and ACP let no form ask for. It goes by
// the words of the field's name and title; there is no format for passwords. It is a net with
// holes: what it lets through is the application's responsibility all the same.
func AsksForSecret(f interrupt.Field) bool {
	return namesSecret(f.Name) || namesSecret(f.Title)
}

func namesSecret(name string) bool {
	words := wordsOf(name)
	before := ""
	for _, word := range words {
		one := strings.TrimSuffix(word, "s")
		if slices.Contains(secretWords, one) || slices.Contains(secretPairs, before+" "+one) {
			return true
		}
		before = word
	}
	return len(words) > 0 && slices.Contains(secretLast, words[len(words)-1])
}

// wordsOf splits a name as people write names: apiKey, API_KEY, api-key, API key.
func wordsOf(name string) []string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			b.WriteByte(' ')
			continue
		}
		upper := unicode.IsUpper(r)
		if i > 0 && upper && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
