package interrupt

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A URLInterrupt asks a person to open a page of the application's. Accepting it means consent to
// navigate and nothing more: whether the person did there what was needed stands in the
// application's own records. The library never opens, fetches or follows the URL (R12). Its zero
// value is invalid; make it with [URL].
type URLInterrupt struct {
	Message string `json:"message"`
	URL     string `json:"url"`

	// Key and Lifetime are the question's own (see [Keyed], [Limited]); they are not part of what
	// is shown.
	Key      string        `json:"-"`
	Lifetime time.Duration `json:"-"`

	// Action is what the person did, set by Return.
	Action Action `json:"-"`
}

// A URLPayload is the payload that answers a URL. It carries no content, whatever the action.
type URLPayload struct {
	InterruptId string `json:"interruptId,omitempty"` //nolint:revive // the published manner
	Action      Action `json:"action,omitempty"`
}

// URL asks a person to open an absolute https URL without user information, and without what makes
// it look like another: spaces, backslashes, control characters, and those that turn the direction
// of the text or are not seen. Percent-encoded, these may stand in the path and after it.
func URL(message, address string) *URLInterrupt {
	return &URLInterrupt{Message: message, URL: address}
}

// TypeName returns "url".
func (u *URLInterrupt) TypeName() string { return TypeURL }

// Serialize returns the question without its decision.
func (u *URLInterrupt) Serialize() ([]byte, error) { return serialize(u) }

// Error names the host of the URL only: its path and query can be the person's own.
func (u *URLInterrupt) Error() string {
	if parsed, err := url.Parse(u.URL); err == nil {
		return fmt.Sprintf("consent to open a page of %q is needed", parsed.Host)
	}
	return "consent to open a page is needed"
}

// QuestionKey returns Key.
func (u *URLInterrupt) QuestionKey() string { return u.Key }

// QuestionLifetime returns Lifetime.
func (u *URLInterrupt) QuestionLifetime() time.Duration { return u.Lifetime }

// Validate reports what makes the question unfit to be shown, as a [*QuestionError].
func (u *URLInterrupt) Validate() error {
	if u.Message == "" || !utf8.ValidString(u.Message) {
		return &QuestionError{TypeURL, "/message", "must not be empty, and valid UTF-8"}
	}
	parsed, err := url.Parse(u.URL)
	switch {
	case !utf8.ValidString(u.URL):
		return &QuestionError{TypeURL, "/url", "is not valid UTF-8"}
	case strings.ContainsFunc(u.URL, misleads):
		return &QuestionError{TypeURL, "/url", "must not hold a space, a backslash, or an invisible character that is not percent-encoded"}
	case err != nil:
		return &QuestionError{TypeURL, "/url", "is not a URL"}
	case parsed.Scheme != "https":
		return &QuestionError{TypeURL, "/url", "must be absolute and of scheme https, without exception for loopback"}
	case parsed.Hostname() == "":
		return &QuestionError{TypeURL, "/url", "must name a host"}
	case !utf8.ValidString(parsed.Host), strings.ContainsFunc(parsed.Host, misleads):
		return &QuestionError{TypeURL, "/url", "must not name a host with percent-encoded invisible characters"}
	case parsed.User != nil:
		return &QuestionError{TypeURL, "/url", "must not hold user information"}
	}
	if port := parsed.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return &QuestionError{TypeURL, "/url", "must name a port from 1 to 65535, where it names one"}
		}
	}
	return nil
}

// misleads reports whether a character makes a URL look like another one, or is read as another by
// what opens it: controls, those that turn the direction of the text or are not seen (Unicode's
// format characters), any space, and the backslash, which browsers take for a slash.
func misleads(r rune) bool {
	return r == '\\' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z)
}

// ValidatePayload checks an answer without changing anything.
func (u *URLInterrupt) ValidatePayload(payload []byte) error {
	return validatePayload(u, TypeURL, payload)
}

// Return sets the action.
func (u *URLInterrupt) Return(payload []byte) error { return returnPayload(u, TypeURL, payload) }

func (u *URLInterrupt) fits(a answer) error { return a.only(TypeURL) }

func (u *URLInterrupt) settle(a answer) error {
	if err := u.fits(a); err != nil {
		return err
	}
	u.Action = a.Action
	return nil
}

func (u *URLInterrupt) clone() Interrupt {
	dup := *u
	return &dup
}
