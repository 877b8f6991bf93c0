package checkpoint

// The data of records and audit entries, member by member in the order of the struct fields, whose
// tags say what is left out where it is zero: they are the form as Decode reads it. A test compares
// the two, field by field.

func (in *Interaction) appendTo(m *members) {
	m.open()
	m.integer("v", formatVersion)
	m.hex("id", in.ID[:])
	m.number("revision", in.Revision)
	m.status("status", in.Status)
	m.hex("scope", in.Scope[:])
	m.optionalHash("start", in.Start)
	m.optionalHash("join", in.Join)
	m.time("created", in.Created)
	m.time("updated", in.Updated)
	m.optionalTime("due", in.Due)
	if in.Claim != (Claim{}) {
		m.name("claim")
		in.Claim.appendTo(m)
	}
	m.text("tool", in.Tool)
	m.optionalText("toolRevision", in.ToolRevision)
	m.optionalRaw("arguments", in.Arguments)
	if len(in.Rounds) > 0 {
		m.name("rounds")
		m.buf = append(m.buf, '[')
		for i := range in.Rounds {
			m.element(i)
			in.Rounds[i].appendTo(m)
		}
		m.buf = append(m.buf, ']')
	}
	if in.Ending != nil {
		m.name("ending")
		in.Ending.appendTo(m)
	}
	if in.Remains != nil {
		m.name("remains")
		in.Remains.appendTo(m)
	}
	m.shut()
}

func (r *Run) appendTo(m *members) {
	m.open()
	m.integer("v", formatVersion)
	m.hex("id", r.ID[:])
	m.number("revision", r.Revision)
	m.status("status", r.Status)
	m.hex("scope", r.Scope[:])
	m.optionalHash("start", r.Start)
	m.time("created", r.Created)
	m.time("updated", r.Updated)
	m.optionalTime("due", r.Due)
	if r.Claim != (Claim{}) {
		m.name("claim")
		r.Claim.appendTo(m)
	}
	m.optionalText("face", r.Face)
	m.optionalRaw("notes", r.Notes)
	if r.Blob != nil {
		m.name("blob")
		m.open()
		m.integer("size", r.Blob.Size)
		m.hex("digest", r.Blob.Digest[:])
		m.shut()
	}
	m.optionalTime("deadline", r.Deadline)
	m.optionalTrue("endless", r.Endless)
	if r.Ending != nil {
		m.name("ending")
		r.Ending.appendTo(m)
	}
	m.shut()
}

func (c *Claim) appendTo(m *members) {
	m.open()
	m.optionalText("owner", c.Owner)
	m.optionalNumber("epoch", c.Epoch)
	m.optionalNumber("attempt", uint64(c.Attempt))
	m.shut()
}

func (r *Round) appendTo(m *members) {
	m.open()
	m.name("questions")
	if r.Questions == nil {
		m.buf = append(m.buf, "null"...)
	} else {
		m.buf = append(m.buf, '[')
		for i := range r.Questions {
			m.element(i)
			r.Questions[i].appendTo(m)
		}
		m.buf = append(m.buf, ']')
	}
	m.optionalRaw("state", r.State)
	m.hex("digest", r.Digest[:])
	m.time("asked", r.Asked)
	m.optionalTime("deadline", r.Deadline)
	m.name("mint")
	r.Mint.appendTo(m)
	if r.Answer != nil {
		m.name("answer")
		r.Answer.appendTo(m)
	}
	m.shut()
}

func (q *Question) appendTo(m *members) {
	m.open()
	m.text("id", q.ID)
	m.text("type", q.Type)
	m.optionalInteger("version", q.Version)
	m.optionalText("key", q.Key)
	m.raw("body", q.Body)
	m.hex("digest", q.Digest[:])
	if q.Shown != nil {
		m.name("shown")
		m.open()
		m.text("type", q.Shown.Type)
		m.raw("body", q.Shown.Body)
		m.shut()
	}
	if q.Remember != nil {
		m.name("remember")
		q.Remember.appendTo(m)
	}
	m.shut()
}

func (r *Remember) appendTo(m *members) {
	m.open()
	m.optionalTrue("anyArguments", r.AnyArguments)
	if len(r.Arguments) > 0 {
		m.name("arguments")
		m.buf = append(m.buf, '[')
		for i, name := range r.Arguments {
			m.element(i)
			m.string(name)
		}
		m.buf = append(m.buf, ']')
	}
	m.integer("seconds", r.Seconds)
	m.shut()
}

func (t *Mint) appendTo(m *members) {
	m.open()
	m.text("key", t.Key)
	m.optionalNumber("count", uint64(t.Count))
	m.optionalText("face", t.Face)
	m.hex("session", t.Session[:])
	m.shut()
}

func (a *Answer) appendTo(m *members) {
	m.open()
	m.name("payloads")
	if a.Payloads == nil {
		m.buf = append(m.buf, "null"...)
	} else {
		m.buf = append(m.buf, '[')
		for i, payload := range a.Payloads {
			m.element(i)
			m.value(payload)
		}
		m.buf = append(m.buf, ']')
	}
	m.hex("digest", a.Digest[:])
	m.time("time", a.Time)
	m.optionalText("by", a.By)
	m.optionalText("face", a.Face)
	m.optionalTrue("elsewhere", a.Elsewhere)
	m.optionalTrue("fallback", a.Fallback)
	if len(a.Remembered) > 0 {
		m.name("remembered")
		m.buf = append(m.buf, '[')
		for i := range a.Remembered {
			m.element(i)
			m.digits(a.Remembered[i][:])
		}
		m.buf = append(m.buf, ']')
	}
	m.shut()
}

func (e *Ending) appendTo(m *members) {
	m.open()
	m.optionalText("code", e.Code)
	m.optionalText("message", e.Message)
	m.optionalText("link", e.Link)
	m.optionalRaw("result", e.Result)
	m.time("time", e.Time)
	m.shut()
}

func (r *Remains) appendTo(m *members) {
	m.open()
	if r.Status != 0 {
		m.status("status", r.Status)
	}
	m.optionalHash("digest", r.Digest)
	m.shut()
}

func (e *Entry) appendTo(m *members) {
	m.open()
	m.integer("v", auditVersion)
	m.time("time", e.Time)
	m.hex("interaction", e.Interaction[:])
	m.text("action", string(e.Action))
	m.status("status", e.Status)
	m.optionalInteger("round", e.Round)
	m.optionalNumber("attempt", uint64(e.Attempt))
	m.optionalText("tool", e.Tool)
	m.optionalHash("scope", e.Scope)
	m.optionalText("by", e.By)
	m.optionalText("face", e.Face)
	m.optionalText("code", e.Code)
	m.optionalTrue("remembered", e.Remembered)
	m.shut()
}
