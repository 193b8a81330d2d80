import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AuthenticationCreds, BufferJSON, Curve, initAuthCreds, proto } from 'baileys'
import { keyFileName } from '../../src/whatsapp/baileys/transfer/session-values.ts'

const KEY_TYPE = Buffer.of(5)

export interface LinkedSession {
  creds: AuthenticationCreds
  /** By type, then by ID. */
  keys: Record<string, Record<string, unknown>>
}

/** The credentials and keys of a number that a phone has confirmed, as Baileys has them in memory. */
export function linkedSession(phone = '5511987654321'): LinkedSession {
  const creds = initAuthCreds()
  const phoneKey = Curve.generateKeyPair()
  const identity = creds.signedIdentityKey
  const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1, keyIndex: 1 }).finish()
  const signed = Buffer.concat([Buffer.of(6, 0), details, identity.public])
  const answered = Buffer.concat([Buffer.of(6, 1), details, identity.public, phoneKey.public])
  creds.account = proto.ADVSignedDeviceIdentity.create({
    details,
    accountSignatureKey: phoneKey.public,
    accountSignature: Curve.sign(phoneKey.private, signed),
    deviceSignature: Curve.sign(identity.private, answered),
  })
  creds.me = { id: `${phone}:7@s.whatsapp.net`, lid: '990000001:7@lid', name: 'Shop' }
  creds.nextPreKeyId = 3
  creds.firstUnuploadedPreKeyId = 3
  const state = { senderKeyId: 1, senderChainKey: { iteration: 2, seed: Buffer.alloc(32, 1) }, senderMessageKeys: [] }
  return {
    creds,
    keys: {
      'pre-key': { 1: Curve.generateKeyPair(), 2: Curve.generateKeyPair() },
      session: { '5511900000001.0': { _sessions: { one: { registrationId: 5 } }, version: 'v1' } },
      'sender-key': { '5511900000001-1600000000@g.us::5511900000001::0': Buffer.from(JSON.stringify([state])) },
      'sender-key-memory': { '120363000000000001@g.us': { '5511900000001@s.whatsapp.net': true } },
      'app-state-sync-key': {
        'AAAA/Bc=': proto.Message.AppStateSyncKeyData.create({
          keyData: Buffer.alloc(32, 2),
          fingerprint: { rawId: 1, currentIndex: 2, deviceIndexes: [0, 1] },
          timestamp: 1_700_000_000,
        }),
      },
      'app-state-sync-version': { regular: { version: 1, hash: Buffer.alloc(128, 3), indexValueMap: {} } },
      'lid-mapping': { 5511900000001: '990000002', '990000002_reverse': '5511900000001' },
      'device-list': { 5511900000001: ['0', '3'] },
      'identity-key': { '990000002_1.0': Buffer.concat([KEY_TYPE, Curve.generateKeyPair().public]) },
      tctoken: {
        '990000002@lid': { token: Buffer.alloc(16, 4), timestamp: '1700000000' },
        __index: { token: Buffer.from('[]') },
      },
    },
  }
}

/** The files of `useMultiFileAuthState`, by name. */
export function sessionFiles({ creds, keys }: LinkedSession): Map<string, string> {
  const files = new Map([['creds.json', toJson(creds)]])
  for (const [type, values] of Object.entries(keys))
    for (const [id, value] of Object.entries(values)) files.set(keyFileName(type, id), toJson(value))
  return files
}

export function writeFiles(folder: string, files: ReadonlyMap<string, string>): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of files) writeFileSync(join(folder, name), text)
}

/** The JSON with all bytes as lists of numbers, as written by stores that do not use Baileys' own JSON. */
export function withNumberLists(json: string): string {
  return JSON.stringify(JSON.parse(json), (_, value: unknown) => {
    const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown }
    return type === 'Buffer' && typeof data === 'string' ? { type, data: [...Buffer.from(data, 'base64')] } : value
  })
}

function toJson(value: unknown): string {
  return JSON.stringify(value, BufferJSON.replacer)
}
