/** The texts about accounts. */
export const people = {
  title: 'People',
  hint: 'Who can sign in besides you. The admin key always has the rights of an owner.',
  open: 'Manage people',
  invite: 'Invite a person',
  none: 'Nobody is invited yet',
  noneText:
    'Until you invite somebody, everybody signs in with the admin key or the password of the panel, and may do everything.',
  name: 'Name to sign in with',
  nameHint: 'Such as an e-mail address. No message is sent to it.',
  role: 'Role',
  roles: {
    owner: { name: 'Owner', text: 'May do everything, including inviting people and reading tokens and secrets.' },
    operator: {
      name: 'Operator',
      text: 'Runs instances: links numbers, sends, redelivers. Cannot see tokens or secrets.',
    },
    viewer: { name: 'Viewer', text: 'Reads messages, events and statistics, and changes nothing.' },
  },
  reaches: 'Can access',
  allInstances: 'All instances',
  someInstances: 'Only these instances',
  onlyInstances: (count: number) => (count === 1 ? 'One instance' : `${count} instances`),
  ids: 'IDs of the instances',
  idsHint: 'One on each line. The settings of an instance show its ID.',
  createLink: 'Create the link',
  link: 'Link',
  linkTitle: (name: string) => `Send this link to ${name}`,
  linkText:
    'Copy the link now: it is shown only once. It works once, within 3 days, and lets whoever has it set the password of the account.',
  linkEnds: 'Link valid until',
  withProvider: 'signs in with the provider',
  notYet: 'has not accepted yet',
  change: 'Change',
  changeLabel: (name: string) => `Change ${name}`,
  changedMeanwhile:
    'Nothing was saved: somebody else has changed this access meanwhile. The form now shows their changes too. Check it, then save.',
  newLink: 'New link',
  newLinkLabel: (name: string) => `New link for ${name}`,
  newLinkText:
    'Replaces a link that was not used yet. It also helps with a forgotten password: the old password works until the new one is set.',
  remove: 'Remove',
  removeLabel: (name: string) => `Remove ${name}`,
  removeText: 'The person is signed out at once and can no longer sign in. What they did stays in the audit log.',
  passwordEnds:
    'This account set the panel’s password. The password stops working too, and everybody who signed in with it is signed out. You can set a new one under Settings.',
  passwordStays: 'The panel’s password stays. If this person knows it, set a new one under Settings.',
  linksEnd:
    'Links for setting a password that this person created and nobody has used become invalid, and so do those that were created without an account, for example with the admin key. Create new links for the people who still need one.',
  removed: 'The account was removed.',
  noInstances: 'No instance is assigned to you yet. Ask an owner.',
}

/** The page of an invitation. */
export const invitation = {
  title: 'Welcome to Pombal',
  lead: 'You were invited. The link works once.',
  password: 'New password',
  passwordHint: (least: number) => `At least ${least} characters.`,
  action: 'Set the password and sign in',
  incomplete: 'This link is incomplete. Open the whole link that you were sent, or ask for a new one.',
}

/** Under Settings, for a person with an account. */
export const ownPassword = {
  title: 'Your password',
  hint: 'For signing in with your name. A new one signs you out everywhere else.',
  old: 'Old password',
  change: 'Change password',
  changed: 'Your password was changed. Your other sessions were ended.',
}

export const audit = {
  title: 'Audit log',
  hint: 'Who changed what, and every sign-in. Pombal never changes or erases a record.',
  open: 'Open the audit log',
  when: 'When',
  who: 'Who',
  action: 'What',
  instance: 'On which instance',
  address: 'From',
  none: 'No records match',
  older: 'Show older records',
  again: 'Read again',
  fixed: {
    admin_key: 'Admin key',
    panel: 'Panel, with the admin key or password',
    token: 'Token of the instance',
    nobody: 'Failed sign-in',
    command_line: 'Command on the server',
  },
  check: 'Check the records',
  intact: (count: number) => `All ${count} records are there and unchanged.`,
  broken: 'The records are not intact.',
  brokenAt: (seq: number) => `Record ${seq} is missing, or does not match the one before. Newest digest:`,
  noteDigest: 'To prove it later, note the digest of the newest record elsewhere:',
}
