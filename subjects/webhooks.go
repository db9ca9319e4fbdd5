package subjects

// ClassWebhook stands before a webhook's name where consumers of bridges have their class.
const ClassWebhook = "webhook"

// WebhookGroup is the priority group of a webhook's consumer: the server pinned in it
// delivers.
const WebhookGroup = LaneGroup

// WebhookConsumer returns the name of the consumer of REFOLD_OUT from which a webhook's
// notices are pulled: webhook-crm.
func WebhookConsumer(webhook string) (string, error) {
	if err := validToken("webhook", webhook); err != nil {
		return "", err
	}
	return ClassWebhook + "-" + webhook, nil
}

// ParseWebhookConsumer is the inverse of WebhookConsumer; ok is false for other names.
func ParseWebhookConsumer(name string) (webhook string, ok bool) {
	if len(name) <= len(ClassWebhook) {
		return "", false
	}
	webhook = name[len(ClassWebhook)+1:]
	made, err := WebhookConsumer(webhook)
	return webhook, err == nil && made == name
}

// Dead returns the subject of a webhook's dead letters about a session.
func (n Names) Dead(webhook, sid string) (string, error) {
	if err := ValidSession(sid); err != nil {
		return "", err
	}
	return n.checked(validToken("webhook", webhook), "dead", webhook, sid)
}

// DeadOf matches the dead letters of a webhook.
func (n Names) DeadOf(webhook string) (string, error) {
	return n.checked(validToken("webhook", webhook), "dead", webhook, "*")
}

// DeadAbout matches the dead letters about a session.
func (n Names) DeadAbout(sid string) (string, error) {
	return n.checked(ValidSession(sid), "dead", "*", sid)
}

// DeadAll matches all dead letters.
func (n Names) DeadAll() string { return n.join("dead", "*", "*") }
