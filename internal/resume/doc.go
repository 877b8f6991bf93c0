// Package resume is the context value by which package gate hands a verified resume to package
// interrupt. It is internal, so that nobody outside the module can forge one (R3), and holds raw
// types only, so that both packages can import it.
package resume
