package resume

// An Update is interrupt.Update, which this package cannot import.
type Update struct {
	Completed float64
	Total     *float64
	Message   string
}
