// Package canon gives every JSON value one form of bytes, so that two values are equal exactly when
// their forms are.
//
// The form is that of RFC 8785 (members sorted by UTF-16 code units, minimal escapes, no white
// space) with one difference: numbers are kept exactly, as decimals. RFC 8785 rounds them to
// float64, under which 9007199254740993 and 9007199254740992 would be one value, and an approval of
// the one would approve the other.
//
// Input is checked on the way: one value, valid UTF-8, no duplicate names, and the bounds of
// [Limits]. All of them are checked before work is spent that grows faster than the input.
package canon
