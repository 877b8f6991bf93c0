// Package schema checks the arguments of tools against a JSON Schema, and infers one from a Go
// type.
//
// Numbers are exact, formats are asserted, and nothing is ever loaded: a $ref leads within the
// schema or is refused when the schema is compiled. The dialect is draft 2020-12 where $schema does
// not name an older one.
package schema
