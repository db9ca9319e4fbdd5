package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkHost refuses a request for a host that is not this server's: a page whose name
// resolves to this address would be of the same origin (DNS rebinding).
func (s *server) checkHost(r *http.Request) error {
	name := hostname(r.Host)
	for _, host := range s.o.Hosts {
		if strings.EqualFold(name, host) || strings.EqualFold(name, "["+host+"]") {
			return nil
		}
	}
	return problem(http.StatusForbidden, CodeHostRefused, "the server is not called %q: use one of its names, or start it with that name as --host", name)
}

// hostname returns a host without its port.
func hostname(host string) string {
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		return host[:at]
	}
	return host
}

// checkOrigin refuses a request of a page of another origin that is not on the list, and
// answers preflights of those that are; done then.
func (s *server) checkOrigin(w http.ResponseWriter, r *http.Request, methods map[string]*route) (done bool, err error) {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false, nil
	}
	if !slices.Contains(s.o.Origins, origin) {
		if at, err := url.Parse(origin); err != nil || at.Host == "" || !strings.EqualFold(at.Host, r.Host) {
			return false, problem(http.StatusForbidden, CodeOriginRefused, "pages of %q may not call this server: start it with that origin as --origin", origin)
		}
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Location, Preference-Applied, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" || methods == nil {
		return false, nil
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(allowed(methods), ", "))
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true, nil
}

// allowed returns the methods of a path.
func allowed(methods map[string]*route) []string {
	all := slices.Sorted(maps.Keys(methods))
	if rt := methods[http.MethodGet]; rt != nil && !rt.stream {
		all = append(all, http.MethodHead)
	}
	return all
}
