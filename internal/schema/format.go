package schema

import (
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// IsFormat reports whether value has the format of that name: email, uri, date, time or date-time.
// It is false for any other name.
func IsFormat(name, value string) bool {
	format, ok := strict()[name]
	return ok && format.Validate(value) == nil
}

var errFormat = errors.New("not of the format")

// strict returns the formats in which the library's own check lets through what its standard does
// not: a URI with spaces (RFC 3986), an hour written "+1" (RFC 3339), an address without a local
// part or with a line break in a quoted one (RFC 5321).
var strict = sync.OnceValue(func() map[string]*jsonschema.Format {
	formats := map[string]*jsonschema.Format{}
	for name, also := range map[string]func(string) bool{
		"email":     emailText,
		"uri":       uriText,
		"date":      func(string) bool { return true },
		"date-time": func(s string) bool { return len(s) > 11 && timeText(s[11:]) },
		"time":      timeText,
	} {
		library := libraryFormat(name)
		formats[name] = &jsonschema.Format{Name: name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !also(s) {
				return errFormat
			}
			return library.Validate(v)
		}}
	}
	return formats
})

// libraryFormat returns the library's own check; it exports none but through a schema.
func libraryFormat(name string) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(base, map[string]any{"format": name}); err != nil {
		panic(err) // a constant schema
	}
	return c.MustCompile(base)
}

func emailText(s string) bool {
	return !strings.HasPrefix(s, "@") && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func uriText(s string) bool {
	const others = "-._~:/?#[]@!$&'()*+,;=%"
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(others, r)
	})
}

// timeText reports whether digits stand where RFC 3339 wants them; the library's check compares
// their values.
func timeText(s string) bool {
	if !shaped(s, "dd:dd:dd") {
		return false
	}
	s = s[len("dd:dd:dd"):]
	if strings.HasPrefix(s, ".") {
		s = strings.TrimLeft(s[1:], "0123456789")
	}
	return s == "Z" || s == "z" || shaped(s, "+dd:dd") && len(s) == 6 || shaped(s, "-dd:dd") && len(s) == 6
}

func shaped(s, shape string) bool {
	if len(s) < len(shape) {
		return false
	}
	for i := range len(shape) {
		if shape[i] == 'd' {
			if s[i] < '0' || s[i] > '9' {
				return false
			}
		} else if s[i] != shape[i] {
			return false
		}
	}
	return true
}
