package elicit_test

import (
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/internal/elicit"
	"github.com/parley-go/parley/interrupt"
)

// A field asks for a secret by the words of its name or title, however they are written; words that
// only sound like one do not.
func TestAsksForSecret(t *testing.T) {
	for name, secret := range map[string]bool{
		"password": true, "Password": true, "PASSWORD": true, "userPassword": true, "old_password_2": true, "PWD": true, "pass word": true,
		"API key": true, "apiKey": true, "APIKey": true, "api-key": true, "APIKEY": true, "private.key": true, "Your secret": true,
		"token": true, "github_token": true, "accessTokenOfBot": true, "client-secret": true, "cardNumber": true, "CVV": true, "PIN": true,
		"SMS OTP": true, "backup passwords": true, "apiKeys": true, "Client secrets": true, "credentials": true, "Passwort: password": true,
		"": false, "token_count": false, "maxTokens": false, "secretary": false, "key": false, "pinned": false, "pin colour": false,
		"card": false, "number of cards": false, "passenger": false, "access": false, "compass": false, "tokens": false, "keys": false, "api": false, "keyboard": false,
	} {
		if got := elicit.AsksForSecret(interrupt.Field{Name: name, Title: "What"}); got != secret {
			t.Errorf("name %q: %v", name, got)
		}
		if got := elicit.AsksForSecret(interrupt.Field{Name: "what", Title: name}); got != secret {
			t.Errorf("title %q: %v", name, got)
		}
	}
}

// R19: what an answer is remembered for, and how long, in the largest unit without a fraction.
func TestRemembered(t *testing.T) {
	for want, r := range map[string]checkpoint.Remember{
		"with exactly these arguments, for 24 hours":      {Seconds: 24 * 3600},
		"with exactly these arguments, for 1 hour":        {Seconds: 3600},
		"with any arguments, for 90 minutes":              {AnyArguments: true, Seconds: 90 * 60},
		"with any arguments, for 1 minute":                {AnyArguments: true, Arguments: []string{"a"}, Seconds: 60},
		"with the same service, for 61 seconds":           {Arguments: []string{"service"}, Seconds: 61},
		"with the same service, user, for 1 second":       {Arguments: []string{"service", "user"}, Seconds: 1},
		"with exactly these arguments, for 26281 hours":   {Seconds: 26281 * 3600},
		"with exactly these arguments, for 90001 seconds": {Seconds: 90001},
	} {
		if got := elicit.Remembered(&r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}
