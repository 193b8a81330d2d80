import { Curve, proto } from 'baileys'
import { describe, expect, test } from 'vitest'
import {
  type LinkedSession,
  linkedSession,
  sessionFiles,
  withNumberLists,
} from '../../../../test/sessions/linked-session.ts'
import { readSession, type Session, UnusableSession, writeSession } from './session.ts'
import { parseValue } from './session-values.ts'

const SENDER_KEY = '5511900000001-1600000000@g.us::5511900000001::0'

function read(files: ReadonlyMap<string, string | null>): Session {
  return readSession(Array.from(files, ([file, json]) => ({ name: file.replace(/\.json$/, ''), json })))
}

function places({ rows }: Session): string[] {
  return rows.map(({ type, id }) => `${type}/${id}`).sort()
}

function rowOf({ rows }: Session, type: string, id: string): unknown {
  return parseValue(Buffer.from(rows.find(row => row.type === type && row.id === id)!.value).toString())
}

/** The sentence of the refusal. */
function refusal(change: (session: LinkedSession) => void): string {
  const session = linkedSession()
  change(session)
  try {
    read(sessionFiles(session))
  } catch (error) {
    if (error instanceof UnusableSession) return error.message
    throw error
  }
  return 'accepted'
}

describe('a folder of Baileys', () => {
  test('becomes rows with the IDs that Baileys asks for', () => {
    const session = linkedSession()
    const found = read(sessionFiles(session))
    const given = Object.entries(session.keys).flatMap(([type, ids]) => Object.keys(ids).map(id => `${type}/${id}`))
    expect(places(found)).toEqual([...given, 'creds/creds'].sort())
    expect(found).toMatchObject({ phone: '5511987654321', pushName: 'Shop', keys: given.length, unreadable: 0 })
    expect(rowOf(found, 'pre-key', '1')).toEqual(session.keys['pre-key']!['1'])
    const key = rowOf(found, 'app-state-sync-key', 'AAAA/Bc=') as object
    expect(proto.Message.AppStateSyncKeyData.fromObject(key).keyData).toEqual(Buffer.alloc(32, 2))
  })

  test('is the same after an export, whatever form its bytes had', () => {
    const files = sessionFiles(linkedSession())
    const exported = new Map(Array.from(writeSession(read(files).rows), ({ name, json }) => [name, json]))
    expect(exported).toEqual(files)
    const lists = new Map(Array.from(files, ([name, json]) => [name, withNumberLists(json)]))
    expect(read(lists)).toEqual(read(files))
    // As in Evolution's table and hash, with names as Baileys gives them.
    const quoted = new Map(Array.from(files, ([name, json]) => [name, JSON.stringify(json)]))
    expect(read(quoted)).toEqual(read(files))
  })

  test('of Baileys 6 is converted: sender keys become bytes, and lists of devices are added, which let its sessions move to LIDs', () => {
    const session = linkedSession()
    const states = [{ senderKeyId: 1, senderChainKey: { iteration: 2, seed: Buffer.alloc(32, 1) } }]
    session.keys['sender-key'] = { [SENDER_KEY]: states }
    delete session.keys['device-list']
    delete session.keys['lid-mapping']
    const found = read(sessionFiles(session))
    const senderKey = rowOf(found, 'sender-key', SENDER_KEY) as Buffer
    expect(parseValue(senderKey.toString())).toEqual(states)
    expect(rowOf(found, 'device-list', '5511900000001')).toEqual(['0'])
  })

  test('is accepted without its unreadable keys, which are counted', () => {
    const files: Map<string, string | null> = new Map(sessionFiles(linkedSession()))
    files.set('session-5511900000001.0.json', '{"_sessions":{')
    files.set('pre-key-1.json', JSON.stringify({ public: 1 }))
    files.set('pre-key-2.json', null)
    files.set('lid-mapping-1.json', '""')
    files.set('tctoken-x.json', '{"t":{"type":"Buffer","data":5}}')
    files.set('notes-of-somebody.json', '{}')
    expect(read(files)).toMatchObject({ unreadable: 5 })
    expect(places(read(files)).join()).not.toContain('pre-key/')
  })
})

describe('a session is refused', () => {
  const wrong = Buffer.alloc(64, 9)
  test.each<[string, (session: LinkedSession) => void, RegExp]>([
    ['if no phone has confirmed it', ({ creds }) => delete creds.account, /no phone confirmed it/],
    [
      'if it lacks the device',
      ({ creds }) => (creds.me!.id = '5511987654321@s.whatsapp.net'),
      /a number and its device/,
    ],
    ['if the noise keys are no pair', ({ creds }) => (creds.noiseKey.public = Buffer.alloc(32)), /noise key/],
    [
      'if the identity keys are no pair',
      ({ creds }) => (creds.signedIdentityKey.private = Buffer.alloc(32, 7)),
      /identity key/,
    ],
    ['if the signed pre-key is not signed', ({ creds }) => (creds.signedPreKey.signature = wrong), /signed pre-key/],
    ['if the phone did not sign', ({ creds }) => (creds.account!.accountSignature = wrong), /phone did not sign/],
    ['if the device did not sign', ({ creds }) => (creds.account!.deviceSignature = wrong), /did not sign the phone/],
    [
      'if the details are garbage',
      ({ creds }) => (creds.account!.details = Buffer.from('ff', 'hex')),
      /cannot be read/,
    ],
    ['if its credentials are older than its keys', ({ creds }) => (creds.nextPreKeyId = 2), /older than its keys/],
    [
      'if its identity is of another session',
      ({ creds }) => Object.assign(creds, { signedIdentityKey: Curve.generateKeyPair() }),
      /did not sign the signed pre-key/,
    ],
  ])('%s', (_, change, sentence) => {
    expect(refusal(change)).toMatch(sentence)
  })

  test('if its credentials are missing, empty, cut off or something else', () => {
    const sentence = (json: string | null) => {
      const files: Map<string, string | null> = new Map(sessionFiles(linkedSession()))
      if (json === 'absent') files.delete('creds.json')
      else files.set('creds.json', json)
      return () => read(files)
    }
    expect(sentence('absent')).toThrow(/no credentials/)
    expect(sentence('')).toThrow(/cut off/)
    expect(sentence(null)).toThrow(/cut off/)
    expect(sentence(sessionFiles(linkedSession()).get('creds.json')!.slice(0, 500))).toThrow(/cut off/)
    for (const other of ['[]', '{}', '1', 'null', '{"noiseKey":1,"me":{"id":5},"account":{}}'])
      expect(sentence(other)).toThrow(UnusableSession)
  })
})
