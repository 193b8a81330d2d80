export const instances = {
  title: 'Instances',
  lead: 'Each instance is a WhatsApp number with its own token and webhook.',
  create: 'New instance',
  search: 'Search by name, ID or number',
  anyState: 'Any state',
  order: 'Order',
  orders: { newest: 'Newest first', name: 'By name', traffic: 'Busiest first' },
  name: 'Name',
  whatsapp: 'WhatsApp',
  number: 'Number',
  noNumber: 'no number yet',
  traffic: 'Last hour',
  trafficHint: (sent: number, received: number, queued: number) =>
    `${sent} sent, ${received} received${queued === 0 ? '' : `, ${queued} queued`} in the last hour`,
  failed: (count: number, percent: number) => `${count} failed (${percent}%)`,
  webhook: 'Webhook',
  sandbox: 'sandbox',
  emptyTitle: 'No instances yet',
  emptyText:
    'An instance sends and receives for one WhatsApp number. Start with a sandbox: it behaves like the real thing and needs no phone.',
  trySandbox: 'Try the sandbox',
  trySandboxHint: 'A simulated WhatsApp. Connected within seconds; no message reaches WhatsApp.',
  linkNumber: 'Link a real number',
  linkNumberHint: 'With the WhatsApp on your phone, by QR code or pairing code.',
  noneFound: 'No instances match',
  noneFoundText: (search: string) => `No instance has “${search}” in its name, ID or number.`,
  clearSearch: 'Show all instances',
  createTitle: 'New instance',
  kind: 'Kind',
  nameHint: 'Shown in this panel, and to programs that use the token of the instance. It is never sent to WhatsApp.',
  namePlaceholder: 'Shop',
  sandboxName: 'Sandbox',
  importSession: 'Take over a number from another program',
  importSessionHint:
    'Choose the folder where a program based on Baileys, such as WAHA, keeps its session. No phone is needed. Stop that program for good first.',
  sessionFolder: 'Folder of the session',
  createAction: 'Create',
  creating: 'Creating…',
}

export const attention = {
  title: (count: number) => (count === 1 ? '1 thing needs attention' : `${count} things need attention`),
  more: (count: number) => `Show ${count} more`,
  fewer: 'Show fewer',
  rest: (count: number) => `And ${count} more. Filter the list below by state to find them.`,
  restricted: 'Restricted',
  openInstance: 'Open the instance',
  fixReceiver: 'Fix the receiver; its answers are shown with each attempt.',
  disk: 'The disk is nearly full',
  diskFree: (free: string, total: string) => `${free} of ${total} GiB free`,
  diskRemedy:
    'When it is full, Pombal cannot accept messages. Free up space, enlarge the disk, or keep messages for a shorter time with RETENTION_DAYS.',
}

export const instance = {
  overview: 'Overview',
  inbox: 'Inbox',
  messages: 'Messages',
  events: 'Events',
  files: 'Files',
  webhook: 'Webhook',
  phone: 'Phone',
  settings: 'Settings',
  gone: 'This instance is not available',
  goneText: 'It was deleted, you may no longer see it, or the address is wrong.',
  sandboxBadge: 'Sandbox: its WhatsApp is simulated',
  sections: 'Sections of the instance',
}

export const token = {
  title: 'Send from your program',
  once: 'The token is shown only once. Copy it now and store it with the secrets of your program. If you lose it, create a new one under Settings.',
  id: 'Instance ID',
  token: 'API token',
  curl: 'Send a message from a terminal',
  done: 'I have copied it',
}

export const instanceSettings = {
  rename: 'Name',
  renamed: 'Renamed.',
  facts: 'Details',
  id: 'Instance ID',
  kind: 'Kind',
  kinds: { whatsapp: 'WhatsApp number', sandbox: 'Sandbox' },
  created: 'Created',
  token: 'API token',
  tokenHint: 'Only a digest is stored, so the token cannot be shown again.',
  newToken: 'New token',
  newTokenTitle: 'Create a new token?',
  newTokenText: 'The current token stops working at once. Programs that use it get 401 until they have the new one.',
  newTokenAction: 'Create a new token',
  logout: 'Unlink the number',
  logoutHint: 'Ends the link with WhatsApp. The instance, its token and its log stay.',
  logoutTitle: 'Unlink the number?',
  logoutText:
    'The instance disappears from the phone’s linked devices. Queued messages fail with instance_logged_out, or with unconfirmed if they may have been sent. To send again, link the number again.',
  logoutAction: 'Unlink',
  loggedOut: 'Unlinking…',
  remove: 'Delete the instance',
  removeHint: 'This cannot be undone.',
  removeTitle: 'Delete this instance?',
  removeText: [
    'The token stops working at once.',
    'If the instance is connected, the number is logged out of WhatsApp. The credentials are erased in any case.',
    'Queued messages fail with instance_deleted, or with unconfirmed if they may have been sent.',
    'Pending events are still delivered. Then all data of the instance is erased.',
  ],
  removeAction: 'Delete permanently',
  removed: (name: string) => `${name} was deleted.`,
}

export const person = {
  title: 'Data of one person',
  hint: 'Export or erase the data stored about a person who requests it. The audit log records each export and erasure.',
  contact: 'Number or LID',
  contactHint: 'Country code, area code and number. Other numbers and the LID of the same person are found too.',
  notAPerson: 'Enter a number, such as 5511987654321, or a LID, such as 123456789@lid.',
  export: 'Export',
  erase: 'Erase…',
  eraseTitle: 'Erase the data stored about this person?',
  eraseText: [
    'Messages in both directions, their events, received files and the name are erased. This cannot be undone.',
    'Messages are kept if they are still waiting to be sent, were sent less than 25 hours ago, or have events that are still being posted. Erase again a day later.',
    'To keep a copy, export first.',
  ],
  eraseAction: 'Erase permanently',
  erased: (contact: string, messages: number) =>
    `${contact}: ${messages === 1 ? '1 message was erased.' : `${messages} messages were erased.`}`,
  erasedPartly: (contact: string, messages: number, kept: number) =>
    `${contact}: Erased: ${messages}. Kept for now: ${kept}. Erase again a day later.`,
}

export const pace = {
  title: 'Pace',
  hint: 'Limits how fast this instance sends. An empty field means no limit.',
  perMinute: 'Messages a minute',
  perDay: 'New recipients a day',
  noLimit: 'No limit',
  from: 'Quiet from',
  until: 'Quiet until',
  timeZone: 'Time zone',
  typing: 'Show “typing…” before each text',
  saved: 'The pace was saved.',
}

export const calls = {
  title: 'Calls',
  hint: 'What happens if somebody calls the number. A rejected call stops ringing on the phone too.',
  reject: 'Reject calls',
  text: 'Text to the person who called',
  textHint: 'Each person who calls gets this text at most once in each clock hour. Leave it empty to send none.',
  placeholder: 'We cannot take calls here. Please write to us.',
  saved: 'Saved. It applies to the next call.',
}

export const proxy = {
  title: 'Proxy',
  hint: 'Everything between this instance and WhatsApp goes through the proxy: the connection, and files in both directions. The service tests a new proxy before it uses it.',
  current: 'In use:',
  url: 'Address of the proxy',
  urlHint:
    'An http, https or socks5 URL, with the user name and password if the proxy needs them. The password is not shown again.',
  save: 'Test and use',
  saved: 'The proxy works. The instance connects through it.',
  remove: 'Use no proxy',
  removed: 'The instance connects without a proxy.',
}

export const keys = {
  title: 'API keys',
  hint: 'Give each program a key of its own, limited to what it needs. All of them share the rate limit of the instance.',
  create: 'New key',
  createAction: 'Create the key',
  createdTitle: 'Copy the key',
  once: 'The key is shown only once. Copy it now and store it with the secrets of your program.',
  key: 'API key',
  name: 'Key name',
  nameHint: 'The program that will use it.',
  namePlaceholder: 'CRM',
  mayDo: 'The key may',
  scopes: {
    send: 'send, edit and delete messages, and check numbers',
    read: 'read messages',
    events: 'read and redeliver events',
    webhooks: 'read and change webhooks and their secrets',
    media: 'upload, download and erase files',
  },
  lifetime: 'Expires',
  lifetimes: (days: number) => (days === 0 ? 'Never' : `In ${days} days`),
  lastUsed: 'Last used',
  neverUsed: 'Never used',
  expires: 'expires',
  expiredAt: 'expired',
  expired: 'Expired',
  revoke: 'Revoke',
  revokeLabel: (name: string) => `Revoke the key ${name}`,
  revokeTitle: (name: string) => `Revoke the key ${name}?`,
  revokeText: 'It stops working at once. Programs that use it get 401. Other keys and the token keep working.',
  revoked: 'The key was revoked.',
}
