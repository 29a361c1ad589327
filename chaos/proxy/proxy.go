// A proxy between one client and the API server, which delays, refuses, cuts and holds back what
// its rules say. It ends TLS with a certificate of its own; the client's bearer token goes through.
//
// Rules are set over HTTP at -admin, which only the proxy's own host reaches:
//
//	POST /rules            a rule, as JSON
//	DELETE /rules?id=ID    take it back; with &drop=1 the requests it holds are cut, not let go
//	GET /rules             all rules, with what they did
//	GET /wait?id=ID&acted=N&timeout=SECONDS
//	GET /writes            the last writes that went through, the newest last
//	GET /stats             requests so far, and open watches
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/big"
	random "math/rand"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rule says what happens to requests that match all of its conditions.
type Rule struct {
	ID         string   `json:"id"`
	Verbs      []string `json:"verbs"`       // get list watch create update patch delete; none: all
	Path       string   `json:"path"`        // a regular expression
	Agent      string   `json:"agent"`       // a regular expression for the User-Agent
	Action     string   `json:"action"`      // delay status cut hold stale
	DelayMS    int      `json:"delay_ms"`    // of delay
	Status     int      `json:"status"`      // of status
	RetryAfter int      `json:"retry_after"` // of status: seconds; 0: none is asked for
	Share      float64  `json:"share"`       // of the requests that match; 0 stands for all
	Seed       int64    `json:"seed"`        // of the choice
	After      int      `json:"after"`       // so many that match are let through first
	Times      int      `json:"times"`       // acts on so many; 0: on all

	Matched int `json:"matched"`
	Acted   int `json:"acted"`   // requests, or open watches, that it did something to
	Holding int `json:"holding"` // requests that it holds now
	Kept    int `json:"kept"`    // bytes of watches that it kept back

	path, agent *regexp.Regexp
	chance      *random.Rand
	over        chan struct{}
	drop        bool
}

type write struct {
	T      float64 `json:"t"`
	Verb   string  `json:"verb"`
	Path   string  `json:"path"`
	Agent  string  `json:"agent"`
	Status int     `json:"status"`
}

type proxy struct {
	mu      sync.Mutex
	changed *sync.Cond
	rules   []*Rule
	watches map[*watcher]bool
	writes  []write
	asked   int
	forward *httputil.ReverseProxy
}

const keptWrites = 4000

var actions = []string{"delay", "status", "cut", "hold", "stale"}

func verb(r *http.Request) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	if w := r.URL.Query().Get("watch"); w == "true" || w == "1" {
		return "watch"
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return "get"
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) == 1 {
		return "list"
	}
	return "get"
}

func (rule *Rule) fits(verb, path, agent string) bool {
	if len(rule.Verbs) > 0 && !slices.Contains(rule.Verbs, verb) {
		return false
	}
	return rule.path.MatchString(path) && rule.agent.MatchString(agent)
}

// counts a request that fits, and says whether the rule acts on it.
func (rule *Rule) takes() bool {
	rule.Matched++
	if rule.Matched <= rule.After || (rule.Times > 0 && rule.Acted >= rule.Times) {
		return false
	}
	if rule.Share > 0 && rule.Share < 1 && rule.chance.Float64() >= rule.Share {
		return false
	}
	rule.Acted++
	return true
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb, agent := verb(r), r.UserAgent()
	p.mu.Lock()
	p.asked++
	var taken []*Rule
	for _, rule := range p.rules {
		if rule.fits(verb, r.URL.Path, agent) && (rule.Action == "stale" || rule.takes()) {
			taken = append(taken, rule)
		}
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	for _, rule := range taken {
		switch rule.Action {
		case "delay":
			select {
			case <-time.After(time.Duration(rule.DelayMS) * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		case "status":
			refuse(w, rule)
			p.note(verb, r, rule.Status)
			return
		case "cut":
			panic(http.ErrAbortHandler)
		case "hold":
			p.hold(rule, r)
			if rule.drop {
				panic(http.ErrAbortHandler)
			}
		}
	}
	if verb == "watch" {
		p.watch(w, r, agent)
		return
	}
	seen := &status{ResponseWriter: w, code: http.StatusOK}
	p.forward.ServeHTTP(seen, r)
	p.note(verb, r, seen.code)
}

func (p *proxy) hold(rule *Rule, r *http.Request) {
	p.count(&rule.Holding, 1)
	defer p.count(&rule.Holding, -1)
	select {
	case <-rule.over:
	case <-r.Context().Done(): // who asked is gone
		panic(http.ErrAbortHandler)
	}
}

func (p *proxy) count(what *int, by int) {
	p.mu.Lock()
	*what += by
	p.changed.Broadcast()
	p.mu.Unlock()
}

func (p *proxy) note(verb string, r *http.Request, code int) {
	if verb == "get" || verb == "list" || verb == "watch" {
		return
	}
	now := float64(time.Now().UnixMicro()) / 1e6
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, write{now, verb, r.URL.Path, r.UserAgent(), code})
	if len(p.writes) > keptWrites {
		p.writes = p.writes[len(p.writes)-keptWrites:]
	}
}

func refuse(w http.ResponseWriter, rule *Rule) {
	reason := map[int]string{
		409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
	}[rule.Status]
	w.Header().Set("Content-Type", "application/json")
	if rule.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(rule.RetryAfter))
	}
	w.WriteHeader(rule.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": rule.Status,
		"reason": reason, "message": "refused on purpose",
	})
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// watcher is an open watch. What it brings while a rule "stale" fits is kept, and brought later.
type watcher struct {
	http.ResponseWriter
	path, agent string
	end         context.CancelFunc
	mu          sync.Mutex
	kept        []byte
	p           *proxy
}

func (p *proxy) watch(w http.ResponseWriter, r *http.Request, agent string) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	it := &watcher{ResponseWriter: w, path: r.URL.Path, agent: agent, end: end, p: p}
	p.mu.Lock()
	p.watches[it] = true
	for _, rule := range p.rules {
		if rule.Action == "stale" && rule.fits("watch", it.path, it.agent) {
			rule.Matched++
			rule.Acted++
		}
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, it)
		p.mu.Unlock()
	}()
	p.forward.ServeHTTP(it, r.WithContext(ctx))
}

func (it *watcher) Write(data []byte) (int, error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.p.mu.Lock()
	stale := false
	for _, rule := range it.p.rules {
		if rule.Action == "stale" && rule.fits("watch", it.path, it.agent) {
			stale = true
			rule.Kept += len(data)
		}
	}
	it.p.changed.Broadcast()
	it.p.mu.Unlock()
	if stale {
		it.kept = append(it.kept, data...)
		return len(data), nil
	}
	if len(it.kept) > 0 {
		data = append(it.kept, data...)
		it.kept = nil
		if _, err := it.ResponseWriter.Write(data); err != nil {
			return 0, err
		}
		return len(data), nil
	}
	return it.ResponseWriter.Write(data)
}

func (it *watcher) FlushError() error {
	return http.NewResponseController(it.ResponseWriter).Flush()
}

func (it *watcher) Flush() { _ = it.FlushError() }

// brings what was kept, once no rule keeps it any more.
func (it *watcher) release() {
	it.mu.Lock()
	defer it.mu.Unlock()
	if len(it.kept) == 0 {
		return
	}
	if _, err := it.ResponseWriter.Write(it.kept); err != nil {
		it.end()
	}
	it.kept = nil
	_ = it.FlushError()
}

// administration ---------------------------------------------------------------------------

func (p *proxy) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rules", p.add)
	mux.HandleFunc("DELETE /rules", p.remove)
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, p.rules)
	})
	mux.HandleFunc("GET /wait", p.wait)
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, map[string]int{"requests": p.asked, "watches": len(p.watches)})
	})
	mux.HandleFunc("GET /writes", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, p.writes)
	})
	return mux
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}

func (p *proxy) add(w http.ResponseWriter, r *http.Request) {
	rule := &Rule{over: make(chan struct{})}
	err := json.NewDecoder(r.Body).Decode(rule)
	if err == nil && !slices.Contains(actions, rule.Action) {
		err = fmt.Errorf("no action %q", rule.Action)
	}
	if err == nil {
		rule.path, err = regexp.Compile(rule.Path)
	}
	if err == nil {
		rule.agent, err = regexp.Compile(rule.Agent)
	}
	if err == nil && (rule.ID == "" || p.find(rule.ID) != nil) {
		err = errors.New("a rule has an id of its own")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rule.chance = random.New(random.NewSource(rule.Seed))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rule)
	for it := range p.watches {
		if rule.Action != "cut" && rule.Action != "stale" || !rule.fits("watch", it.path, it.agent) {
			continue
		}
		rule.Matched++
		rule.Acted++
		if rule.Action == "cut" {
			it.end()
		}
	}
	answer(w, rule)
}

func (p *proxy) find(id string) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if rule.ID == id {
			return rule
		}
	}
	return nil
}

func (p *proxy) remove(w http.ResponseWriter, r *http.Request) {
	rule := p.find(r.URL.Query().Get("id"))
	if rule == nil {
		http.Error(w, "no such rule", http.StatusNotFound)
		return
	}
	p.mu.Lock()
	p.rules = slices.DeleteFunc(p.rules, func(one *Rule) bool { return one == rule })
	rule.drop = r.URL.Query().Get("drop") == "1"
	close(rule.over)
	var open []*watcher
	for it := range p.watches {
		open = append(open, it)
	}
	kept := *rule
	p.mu.Unlock()
	for _, it := range open {
		if !p.stale(it) {
			it.release()
		}
	}
	answer(w, kept)
}

func (p *proxy) stale(it *watcher) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.rules, func(rule *Rule) bool {
		return rule.Action == "stale" && rule.fits("watch", it.path, it.agent)
	})
}

func (p *proxy) wait(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	rule := p.find(query.Get("id"))
	acted, err := strconv.Atoi(query.Get("acted"))
	seconds, failed := strconv.ParseFloat(query.Get("timeout"), 64)
	if rule == nil || err != nil || failed != nil {
		http.Error(w, "id of a rule, acted and timeout are needed", http.StatusBadRequest)
		return
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	timer := time.AfterFunc(time.Until(end), p.changed.Broadcast)
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for rule.Acted < acted && time.Now().Before(end) {
		p.changed.Wait()
	}
	answer(w, rule)
}

// the certificate --------------------------------------------------------------------------

func certificate(hosts []string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "muster API proxy"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, text, nil
}

func main() {
	listen := flag.String("listen", ":16443", "where the client connects to")
	admin := flag.String("admin", "127.0.0.1:16444", "where rules are set")
	backend := flag.String("backend", "https://127.0.0.1:6443", "the API server")
	ca := flag.String("backend-ca", "/etc/kubernetes/pki/ca.crt", "who signed its certificate")
	name := flag.String("backend-name", "kubernetes.default.svc", "a name in its certificate")
	hosts := flag.String("hosts", "127.0.0.1", "names and addresses of this proxy")
	out := flag.String("ca-out", "", "file for this proxy's certificate, written when it is ready")
	flag.Parse()

	target, err := url.Parse(*backend)
	check(err)
	signers := x509.NewCertPool()
	text, err := os.ReadFile(*ca)
	check(err)
	if !signers.AppendCertsFromPEM(text) {
		log.Fatalf("%s holds no certificate", *ca)
	}
	p := &proxy{watches: map[*watcher]bool{}}
	p.changed = sync.NewCond(&p.mu)
	p.forward = &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: signers, ServerName: *name},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			MaxIdleConns:       100,
			IdleConnTimeout:    90 * time.Second,
		},
		// the API server is away: so is the client's connection
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(os.Stderr, "", 0),
	}
	pair, own, err := certificate(strings.Split(*hosts, ","))
	check(err)
	private, err := net.Listen("tcp", *admin)
	check(err)
	go func() { check(http.Serve(private, p.admin())) }()
	public, err := net.Listen("tcp", *listen)
	check(err)
	if *out != "" {
		check(os.WriteFile(*out+".partial", own, 0o644))
		check(os.Rename(*out+".partial", *out))
	}
	server := &http.Server{
		Handler:   p,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		ErrorLog:  log.New(os.Stderr, "", 0),
	}
	check(server.ServeTLS(public, "", ""))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
