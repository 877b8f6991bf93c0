package interrupt

import (
	"fmt"
	"net/url"
	"time"
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

// URL asks a person to open an absolute https URL without user information.
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
	case err != nil, !utf8.ValidString(u.URL):
		return &QuestionError{TypeURL, "/url", "is not a URL"}
	case parsed.Scheme != "https":
		return &QuestionError{TypeURL, "/url", "must be absolute and of scheme https, without exception for loopback"}
	case parsed.Hostname() == "":
		return &QuestionError{TypeURL, "/url", "must name a host"}
	case parsed.User != nil:
		return &QuestionError{TypeURL, "/url", "must not hold user information"}
	}
	return nil
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
