package bustest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Operated starts a server whose accounts are JWTs, as those of providers are, and returns
// the credentials file of a user. change sets the limits of the account and the
// permissions of the user, which have none before.
func Operated(t testing.TB, change func(*jwt.AccountClaims, *jwt.UserClaims)) (n *Node, creds string) {
	t.Helper()
	operator, operatorID := key(t, nkeys.PrefixByteOperator)
	_, systemID := key(t, nkeys.PrefixByteAccount)
	owner, accountID := key(t, nkeys.PrefixByteAccount)
	user, userID := key(t, nkeys.PrefixByteUser)

	account, as := jwt.NewAccountClaims(accountID), jwt.NewUserClaims(userID)
	account.Name, as.Name = "acme", "daemon"
	account.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	change(account, as)
	signed := func(claims interface {
		Encode(nkeys.KeyPair) (string, error)
	}, by nkeys.KeyPair) string {
		text, err := claims.Encode(by)
		OK(t, err)
		return text
	}
	head := jwt.NewOperatorClaims(operatorID)
	head.SystemAccount = systemID
	n = Configured(t, fmt.Sprintf(`
		jetstream { store_dir: "DIR" }
		operator: %s
		resolver: MEMORY
		resolver_preload { %s: %s, %s: %s }`,
		signed(head, operator), systemID, signed(jwt.NewAccountClaims(systemID), operator), accountID, signed(account, operator)))

	seed, err := user.Seed()
	OK(t, err)
	text, err := jwt.FormatUserConfig(signed(as, owner), seed)
	OK(t, err)
	creds = filepath.Join(t.TempDir(), "user.creds")
	OK(t, os.WriteFile(creds, text, 0o600))
	return n, creds
}

func key(t testing.TB, kind nkeys.PrefixByte) (pair nkeys.KeyPair, public string) {
	t.Helper()
	pair, err := nkeys.CreatePair(kind)
	OK(t, err)
	public, err = pair.PublicKey()
	OK(t, err)
	return pair, public
}

// OldServer sends INFO with a version, and then answers nothing but pings. It returns its
// address.
func OldServer(t testing.TB, version string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	OK(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go func() {
				fmt.Fprintf(conn, "INFO {\"server_id\":\"F\",\"version\":%q,\"max_payload\":1048576,\"proto\":1,\"headers\":true,\"jetstream\":true}\r\n", version)
				in := bufio.NewScanner(conn)
				for in.Scan() {
					if strings.HasPrefix(in.Text(), "PING") {
						fmt.Fprint(conn, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}
