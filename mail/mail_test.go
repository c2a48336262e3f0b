package mail_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"openbot/domain"
	"openbot/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a real mail server, Mailpit, that speaks TLS and asks for a name and a
// password.
type server struct {
	smtp, web string
	roots     *x509.CertPool
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func start(t *testing.T, args ...string) server {
	t.Helper()
	folder := os.Getenv("OPENBOT_TEST_OUTSIDE_DIR")
	if folder == "" {
		t.Skip("OPENBOT_TEST_OUTSIDE_DIR is not set: NOT tested against a real mail server (make test sets it)")
	}
	s := server{smtp: free(t), web: free(t), roots: x509.NewCertPool()}
	dir := t.TempDir()
	cert, key, users := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "users")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	must(t, os.WriteFile(users, []byte("openbot:right\n"), 0o600))
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	s.roots.AddCert(parsed)
	cmd := exec.Command(filepath.Join(folder, "mailpit"), append([]string{"--smtp", s.smtp, "--listen", s.web, "--disable-version-check",
		"--smtp-disable-rdns", "--smtp-auth-file", users, "--smtp-tls-cert", cert, "--smtp-tls-key", key}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		http.DefaultClient.CloseIdleConnections()
	})
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		response, err := http.Get("http://" + s.web + "/readyz")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return s
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the mail server does not listen")
		}
	}
}

func (s server) options(t *testing.T, how string) mail.Options {
	t.Helper()
	host, port, err := net.SplitHostPort(s.smtp)
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	return mail.Options{Host: host, Port: number, TLS: how, User: "openbot", Password: "right", From: "openbot@example.com", Roots: s.roots}
}

// raw gives every message that came, as it came.
func (s server) raw(t *testing.T) []string {
	t.Helper()
	get := func(path string) []byte {
		response, err := http.Get("http://" + s.web + path)
		must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must(t, err)
		return body
	}
	var list struct{ Messages []struct{ ID string } }
	must(t, json.Unmarshal(get("/api/v1/messages"), &list))
	var out []string
	for _, m := range list.Messages {
		out = append(out, string(get("/api/v1/message/"+m.ID+"/raw")))
	}
	return out
}

var letter = domain.Mail{ID: "dlv_1", To: "ann@example.com", Subject: "A Request of Helper waits", Text: "Bot: Helper\n\nhttps://bots.example.com/requests/req_1\n"}

// Mail goes out encrypted, both ways of it, and nothing goes out when that or the login
// fails.
func TestMailGoesOutOverTLS(t *testing.T) {
	for how, args := range map[string][]string{mail.TLSStart: {"--smtp-require-starttls"}, mail.TLSFromStart: {"--smtp-require-tls"}} {
		t.Run(how, func(t *testing.T) {
			s := start(t, args...)
			good := s.options(t, how)
			if status, err := mail.New(good).Send(t.Context(), letter); err != nil || status != 250 {
				t.Fatalf("it gave %d, %v", status, err)
			}
			strange, wrong, plain := good, good, good
			strange.Roots = x509.NewCertPool()
			wrong.Password = "wrong-and-secret"
			plain.TLS, plain.User, plain.Password = mail.TLSNone, "", ""
			bad := map[string]mail.Options{"a certificate that is not trusted": strange, "a wrong password": wrong}
			if how == mail.TLSStart {
				bad["no TLS"] = plain // else the server waits for a greeting in silence
			}
			for name, o := range bad {
				status, err := mail.New(o).Send(t.Context(), letter)
				var failure *domain.AppError
				if status/100 == 2 || err == nil && status/100 != 5 || err != nil && !errors.As(err, &failure) {
					t.Errorf("%s: it gave %d, %v", name, status, err)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: the error holds the password: %v", name, err)
				}
			}
			if got := s.raw(t); len(got) != 1 {
				t.Errorf("%d messages came", len(got))
			}
		})
	}
}

// A server that offers no TLS gets nothing, unless it was asked to be spoken to in the
// clear.
func TestNothingGoesOutInTheClearUnasked(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	heard := make(chan string, 1)
	go func() {
		defer close(heard)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "220 old.example ESMTP\r\n")
		var all bytes.Buffer
		buffer := make([]byte, 1024)
		for {
			n, err := conn.Read(buffer)
			all.Write(buffer[:n])
			if err != nil {
				break
			}
			_, _ = io.WriteString(conn, "250 old.example\r\n")
		}
		heard <- all.String()
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	status, err := mail.New(mail.Options{Host: "127.0.0.1", Port: number, TLS: mail.TLSStart, User: "openbot", Password: "right", From: "openbot@example.com"}).Send(t.Context(), letter)
	if status != 0 || err == nil {
		t.Errorf("it gave %d, %v", status, err)
	}
	must(t, l.Close())
	if text := <-heard; strings.Contains(text, "MAIL FROM") || strings.Contains(text, "AUTH") {
		t.Errorf("it said %q", text)
	}
}

// Nothing that is put into a message becomes a header, a second recipient or the end of
// the message.
func TestNothingBecomesAHeader(t *testing.T) {
	s := start(t)
	m := mail.New(s.options(t, mail.TLSStart))
	evil := "x\r\nBcc: all@example.com\r\nContent-Type: text/html\r\n\r\n<b>hi</b>\r\n.\r\nQUIT\r\n"
	for _, l := range []domain.Mail{{ID: "dlv_1", To: letter.To, Subject: evil, Text: letter.Text}, {ID: "dlv_2", To: letter.To, Subject: "s", Text: evil},
		{ID: "dlv_3", To: letter.To, Subject: "=?utf-8?q?=0d=0aBcc:_x@example.com?=" + strings.Repeat("ü", 500), Text: evil}} {
		if status, err := m.Send(t.Context(), l); err != nil || status != 250 {
			t.Fatalf("it gave %d, %v", status, err)
		}
	}
	for _, to := range []string{"ann@example.com\r\nBcc: all@example.com", "ann@example.com, all@example.com", "<ann@example.com>", "", "ann@example.com>\r\nRCPT TO:<all@example.com"} {
		if status, err := m.Send(t.Context(), domain.Mail{ID: "dlv_4", To: to, Subject: "s", Text: "t"}); err == nil {
			t.Errorf("%q was taken: %d", to, status)
		}
	}
	got := s.raw(t)
	if len(got) != 3 {
		t.Fatalf("%d messages came", len(got))
	}
	for _, raw := range got {
		head, body, _ := strings.Cut(raw, "\r\n\r\n")
		if strings.Contains(head, "\nBcc") || strings.Count(head, "\nContent-Type") != 1 || !strings.Contains(head, "Content-Type: text/plain") || strings.Contains(body, "\r\nBcc: x@") {
			t.Errorf("the message is\n%s", raw)
		}
	}
}
