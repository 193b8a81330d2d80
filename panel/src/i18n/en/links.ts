/** Links with which somebody else links the number. */
export const links = {
  offer: 'Does somebody else have the phone?',
  create: 'Create a link for that person',
  title: 'A link for linking the number',
  text: 'The link opens a page with the QR code of this instance, and nothing else of Pombal. It works in one browser, until the number is linked. It cannot unlink a number or replace one.',
  heading: 'Name on the page',
  headingHint: 'Such as the name of the shop. Optional.',
  lasts: 'The link works for',
  minutes: { 60: '1 hour', 240: '4 hours', 1440: '24 hours' },
  back: 'Address to return to',
  backHint: 'Offered on the page, such as your own site. Optional.',
  made: 'Send this link to the person with the phone. It is shown only once.',
  link: 'Link',
  list: 'Links that were handed out',
  ends: 'works until',
  ended: 'ended',
  used: 'The number was linked with it',
  opened: 'in use',
  notOpened: 'not used yet',
  revoke: 'Revoke',
  revokeLabel: (name: string) => `Revoke ${name}`,
  revokeText: 'The link stops working at once. If it is showing a code, that code stops working too.',
  revoked: 'The link is revoked.',
  unnamed: 'Link without a name',
}

/** The page of such a link. Its readers do not know Pombal. */
export const linkPage = {
  title: 'Link your WhatsApp number',
  lead: 'Have your phone with WhatsApp at hand. On this page you connect it to the service that sent you the link. It takes about a minute.',
  meaning:
    'The service can then send and read messages with your number. You can end this on the phone at any time, under Linked devices.',
  begin: 'Begin',
  connecting: 'The phone has confirmed. This takes a few seconds…',
  done: 'Your number is linked',
  doneText: 'You can close this page. Keep WhatsApp on your phone, and do not remove this linked device.',
  back: 'Return to the site',
  gone: 'This link does not work any more',
  goneText: 'It was used, was revoked or has expired. Ask the person who sent it for a new one.',
  elsewhere: 'This link is in use in another browser',
  elsewhereText: 'Continue there, or ask the person who sent it for a new one. This browser must accept cookies.',
  askSender: 'Something is wrong on the side of the service. Tell the person who sent you the link.',
}
