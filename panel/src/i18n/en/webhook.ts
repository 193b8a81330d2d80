export const webhook = {
  title: 'Webhook',
  lead: 'Where Pombal reports events to your program.',
  url: 'URL',
  urlHint:
    'Pombal posts signed events here: messages received, sent, delivered, read and failed. https is recommended.',
  urlWrong: 'Enter a full URL that begins with http:// or https://',
  save: 'Save',
  saved: 'Saved. New events are posted there.',
  boundNote: 'A new URL applies to new events. Pending events are still posted to the old one.',
  test: 'Send a test event',
  testHint: 'Posts one signed event of type webhook.test and shows the answer. It is not logged and not retried.',
  testing: 'Waiting for the answer…',
  testOk: 'The test event was received.',
  testFailed: 'The test event was not delivered.',
  testStatus: (status: number) => `It answered ${status}. Only 2xx counts as received.`,
  testPosted: 'Posted request',
  seeWaiting: 'Show pending events',
  seeGivenUp: 'Show why, and redeliver',
  rotate: 'New secret',
  rotateTitle: 'Create a new secret?',
  rotateText: 'All events will then be signed with the new secret, including those that are pending.',
  rotateStandard:
    'Receivers that check webhook-signature have 24 hours: the header carries both signatures for that long.',
  rotateService:
    'Receivers that check X-Service-Signature need the new secret at once: make them accept either secret first.',
  overlap: 'The previous secret also signs until',
  overlapText: 'Change the secret in your receiver before then.',
  rotated: 'Events are now signed with a new secret. Update your receiver.',
  verify: 'Check the signature',
  verifyHint:
    'Ready to paste. Each example takes the raw body, before it is parsed, and accepts both secrets while a new one is introduced.',
}
