package planner

// only returns the offers that a client's list names, in its order and under its
// descriptors, and those of the layers that the run's own calls joined.
func (c *choice) only(req Request) *choice {
	kept := newChoice(c.reg)
	kept.cut = c.in
	for _, name := range *req.Only {
		if o, ok := c.reg.resolve(name); ok && c.in[o.tool] {
			kept.offer(o)
		}
	}
	if len(req.Join) > 0 {
		c.reg.joining(req.Join, func(t ToolIndex) {
			if c.in[t] {
				kept.offer(offered{tool: t})
			}
		})
	}
	return kept
}

// choice collects offers, each tool once.
type choice struct {
	reg    *Registry
	in     []bool // by tool
	cut    []bool // by tool: chosen before a client's list left some out; nil: there is none
	offers []Offer
}

func newChoice(reg *Registry) *choice {
	return &choice{reg: reg, in: make([]bool, len(reg.tools)), offers: make([]Offer, 0, len(reg.tools))}
}

// addBase adds the tools of step 1, in their order.
func (c *choice) addBase(req Request) {
	if req.From != FromProfile {
		c.add(req.Base)
		return
	}
	if p, ok := c.reg.profile(req.Profile); ok {
		for _, o := range p.tools {
			c.offer(o)
		}
		return
	}
	for i := range c.reg.tools {
		c.offer(offered{tool: ToolIndex(i)})
	}
}

// add adds the tools of a list, in its order.
func (c *choice) add(names []string) {
	for _, name := range names {
		if o, ok := c.reg.resolve(name); ok {
			c.offer(o)
		}
	}
}

// offer adds one tool, under the descriptor with which it is first added.
func (c *choice) offer(o offered) {
	if c.in[o.tool] {
		return
	}
	c.in[o.tool] = true
	c.offers = append(c.offers, Offer(o.variant)<<offerVariantShift|Offer(o.tool))
}
