import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StanzaText } from '@pombal/simulator'
import type { Random } from '../../../rig/random.ts'

const SOCKETS = join(import.meta.dirname, '../../../../node_modules/baileys/lib/Socket')
const SERVER = 's.whatsapp.net'
const CONTACT = '5511987654321@s.whatsapp.net'
const LID = '99911987654321@lid'
const GROUP = '120363000000000777@g.us'
const NEWSLETTER = '120363000000000001@newsletter'
const BYTES = Buffer.alloc(80, 7).toString('base64')
const T = '1700000000'

type Part = StanzaText
const part = (tag: string, attrs: Record<string, string> = {}, content?: readonly Part[] | string): Part => ({
  tag,
  attrs,
  ...(content !== undefined && { content }),
})
const bytes = (tag: string, attrs: Record<string, string> = {}): Part => ({ tag, attrs, base64: BYTES })

const ib = (child: Part) => part('ib', { from: SERVER }, [child])
const dirty = (type: string) => ib(part('dirty', { type, timestamp: T }))
const notification = (type: string, content: readonly Part[], from = CONTACT) =>
  part('notification', { from, type, id: `N${type}`, t: T, participant: LID }, content)
const inGroup = (tag: string) =>
  notification('w:gp2', [part(tag, {}, [part('participant', { jid: LID, phone_number: CONTACT })])], GROUP)
const receipt = (type: string) =>
  part('receipt', { from: CONTACT, id: '3EB0FEED', type, t: T }, [
    part('retry', { count: '1', id: '3EB0FEED', t: T, v: '1' }),
    bytes('registration'),
    part('keys', {}, [bytes('type'), bytes('identity'), part('key', {}, [bytes('id'), bytes('value')]), part('skey')]),
  ])
const call = (tag: string, attrs: Record<string, string> = {}) =>
  part('call', { from: CONTACT, id: 'CALL', t: T }, [part(tag, { 'call-creator': CONTACT, 'call-id': 'C1', ...attrs })])
const message = (attrs: Record<string, string>, content: readonly Part[]) =>
  part('message', { from: CONTACT, id: '3EB0BEEF', t: T, type: 'text', ...attrs }, content)
const mex = (op: string, data: object) =>
  notification('mex', [part('update', { op_name: op }, JSON.stringify({ data }))], SERVER)

/** Valid stanzas of every kind that Baileys listens to, by Baileys' name of the kind. */
export const STANZAS: Readonly<Record<string, readonly [Part, ...Part[]]>> = {
  'CB:ack,class:message': [
    part('ack', { class: 'message', id: '3EB0', from: CONTACT, t: T }),
    part('ack', { class: 'message', id: '3EB0', from: CONTACT, error: '463' }),
    part('ack', { class: 'message', id: '3EB0', from: LID, error: '479' }),
  ],
  'CB:call': [
    call('offer', { type: 'group' }),
    call('offer', { 'group-jid': GROUP }),
    call('terminate', { reason: 'timeout' }),
    call('relaylatency', { latency: '10' }),
    call('accept'),
  ],
  'CB:chatstate': [part('chatstate', { from: CONTACT }, [part('composing', { media: 'audio' })])],
  'CB:presence': [part('presence', { from: CONTACT, type: 'unavailable', last: T })],
  'CB:failure': [part('failure', { reason: '503' }), part('failure', { reason: '500', location: 'x' })],
  'CB:ib,,dirty': [dirty('groups'), dirty('communities'), dirty('account_sync'), dirty('other')],
  'CB:ib,,downgrade_webclient': [ib(part('downgrade_webclient'))],
  'CB:ib,,edge_routing': [ib(part('edge_routing', {}, [bytes('routing_info')]))],
  'CB:ib,,offline': [ib(part('offline', { count: '3' }))],
  'CB:ib,,offline_preview': [ib(part('offline_preview', { count: '3', message: '1' }))],
  'CB:iq,,pair-success': [
    part('iq', { from: SERVER, type: 'set', id: 'pair' }, [
      part('pair-success', {}, [
        bytes('device-identity'),
        part('device', { jid: CONTACT, lid: LID }),
        part('platform', { name: 'android' }),
      ]),
    ]),
  ],
  'CB:iq,type:set,pair-device': [
    part('iq', { from: SERVER, type: 'set', id: 'pair' }, [part('pair-device', {}, [bytes('ref'), part('ref')])]),
  ],
  'CB:message': [
    message({}, [bytes('enc', { type: 'msg', v: '2' })]),
    message({}, [bytes('enc', { type: 'pkmsg', v: '2' }), bytes('device-identity')]),
    message({ from: GROUP, participant: LID }, [bytes('enc', { type: 'skmsg', v: '2' })]),
    message({}, [bytes('enc', { type: 'msmsg', v: '2' })]),
    message({}, [part('unavailable', { type: 'view_once' })]),
    message({ from: NEWSLETTER }, [bytes('plaintext')]),
    message({ from: 'status@broadcast', participant: CONTACT }, [bytes('enc', { type: 'skmsg' })]),
    message({ recipient: LID, category: 'peer' }, [bytes('enc', { type: 'msg' })]),
    message({ offline: '1' }, [bytes('enc', { type: 'msg', v: '2' })]),
    message({}, [bytes('plaintext')]),
  ],
  'CB:notification': [
    notification('newsletter', [part('reaction'), part('view', {}, '3'), part('participant'), part('update')]),
    notification('newsletter', [part('message', { message_id: '1', t: T }, [bytes('plaintext')])], NEWSLETTER),
    mex('NotificationUserReachoutTimelockUpdate', { xwa2_notify_account_reachout_timelock: { is_active: true } }),
    mex('MessageCappingInfoNotification', { xwa2_notify_new_chat_messages_capping_info_update: {} }),
    mex('NotificationLinkedProfilesUpdates', { xwa2_notify_linked_profiles: { jid: LID, added_profiles: [1, null] } }),
    notification('mex', [
      part('mex', {}, JSON.stringify({ operation: 'NotificationNewsletterUpdate', updates: [{}] })),
    ]),
    ...['create', 'modify', 'add', 'remove', 'leave', 'promote', 'subject', 'description', 'announcement'].map(inGroup),
    ...['ephemeral', 'locked', 'invite', 'member_add_mode', 'membership_approval_mode'].map(inGroup),
    ...['created_membership_requests', 'revoked_membership_requests'].map(inGroup),
    notification('mediaretry', [part('rmr', { jid: CONTACT, from_me: 'true' }), part('encrypt', {}, [bytes('enc_p')])]),
    notification('encrypt', [part('count', { value: '0' })], SERVER),
    notification('encrypt', [part('identity')]),
    notification('devices', [part('add', { device_hash: '2:x' }, [part('device', { jid: CONTACT })])]),
    notification('devices', [part('update', {}, [part('device', { jid: LID })])]),
    notification('server_sync', [part('collection', { name: 'regular', version: '3' })], SERVER),
    notification('picture', [part('set', { id: '1', author: CONTACT })], GROUP),
    notification('picture', [part('delete')]),
    notification('account_sync', [part('disappearing_mode', { duration: '1', t: T })]),
    notification('account_sync', [part('blocklist', {}, [part('item', { jid: CONTACT, action: 'block' })])]),
    notification('link_code_companion_reg', [
      part('link_code_companion_reg', {}, [
        bytes('link_code_pairing_ref'),
        bytes('primary_identity_pub'),
        bytes('link_code_pairing_wrapped_primary_ephemeral_pub'),
      ]),
    ]),
    notification('privacy_token', [part('tokens', {}, [bytes('token', { type: 'trusted_contact', t: T, jid: LID })])]),
  ],
  'CB:receipt': [
    part('receipt', { from: GROUP, id: '3EB0FEED', participant: LID, t: T }, [part('list', {}, [part('item')])]),
    part('receipt', { from: NEWSLETTER, id: '3EB0FEED', type: 'read' }),
    ...['retry', 'read', 'played', 'inactive', 'sender', 'server-error', 'hist_sync'].map(receipt),
  ],
  'CB:stream:error': [part('stream:error', { code: '503' }), part('stream:error', { code: '515' }, [part('ack')])],
  'CB:success': [part('success', { t: T }), part('success', {})],
  'CB:xmlstreamend': [part('xmlstreamend')],
}

/** The kinds of stanza that this version of Baileys listens to. */
export function kindsOfBaileys(): string[] {
  const files = readdirSync(SOCKETS).filter(file => file.endsWith('.js'))
  const found = files.flatMap(file => [
    ...readFileSync(join(SOCKETS, file), 'utf8').matchAll(/ws\.on\(['"`](CB:[^'"`]+)/g),
  ])
  return [...new Set(found.map(([, kind]) => kind!))].sort()
}

const VALUES = [
  '',
  '0',
  '-1',
  'NaN',
  '@',
  '@lid',
  '@g.us',
  'x',
  SERVER,
  GROUP,
  '1e400',
  '\u0000',
  'x'.repeat(3_000),
] as const

/** The stanza with something wrong in one place, or in several. */
export function malformed(stanza: Part, random: Random): Part {
  let changed = stanza
  for (let n = random.integer(0, 2); n >= 0; n--) changed = spoilt(changed, random, 0)
  return changed
}

function spoilt(one: Part, random: Random, depth: number): Part {
  const children = Array.isArray(one.content) ? (one.content as readonly Part[]) : []
  if (children.length > 0 && random.next() < 0.6) {
    const at = random.integer(0, children.length - 1)
    return { ...one, content: children.map((child, n) => (n === at ? spoilt(child, random, depth + 1) : child)) }
  }
  const names = Object.keys(one.attrs ?? {})
  const name = names.length > 0 ? random.pick(names as [string, ...string[]]) : 'from'
  const { [name]: _, ...left } = one.attrs ?? {}
  const { content: __, base64: ___, ...empty } = one
  const ways: [() => Part, ...(() => Part)[]] = [
    () => ({ ...one, attrs: left }),
    () => ({ ...one, attrs: { ...left, [name]: random.pick(VALUES) } }),
    () => empty,
    () => ({ ...empty, content: '' }),
    () => ({ ...empty, content: [] }),
    () => ({ ...empty, content: random.pick(VALUES) }),
    () => ({ ...empty, base64: Buffer.alloc(random.integer(1, 200), random.integer(0, 255)).toString('base64') }),
    () => ({ ...empty, content: [...children, ...children, part('surplus', { id: 'x' })] }),
    () => ({ ...empty, content: children.slice(1) }),
    // The tag of the stanza itself decides who handles it.
    () => (depth > 0 ? { ...one, tag: 'unknown' } : { ...one, attrs: {} }),
  ]
  return random.pick(ways)()
}
