package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/parley-go/parley/gate"
)

// The exit codes; usage has their meaning.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const usage = `Usage: terminal [flags]

Releases a service after asking four questions. It can be stopped at any of them; run it again to go on.
Where standard input or output is no terminal, it writes each prompt as a line of JSON, and reads each answer as one.

Exit codes:
    0  released; or rejected, declined or cancelled; or the input ended, and the question is kept
    1  failed, or another process has the file open
    2  wrong flags
  130  interrupted; the question is kept

Flags:
`

type options struct {
	db, key          string
	service, version string // empty: what is open, or else the next one
	list             bool
}

func parseFlags(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("terminal", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.db, "db", "parley-demo.db", "the `file` in which questions and answers are kept")
	flags.StringVar(&o.key, "key", "", "the `file` of the keys; made where there is none (default: demo.key in the user's configuration)")
	flags.StringVar(&o.service, "service", "", "the `name` of the service (default: that of the open release, or shop)")
	flags.StringVar(&o.version, "version", "", "the `version` (default: that of the open release, or the next one)")
	flags.BoolVar(&o.list, "list", false, "list what is open, and ask nothing")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(flags.Output(), "unexpected argument %q\n", flags.Arg(0))
		flags.Usage()
		return nil, errors.New("unexpected argument")
	}
	if o.key != "" {
		return o, nil
	}
	var err error
	if o.key, err = gate.DefaultKeyFile("demo"); err != nil {
		fmt.Fprintln(flags.Output(), err)
	}
	return o, err
}

func usageCode(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	return exitUsage
}
