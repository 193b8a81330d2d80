/** A self-signed certificate for the names of this machine, created at every start; X.509 v3 (RFC 5280) in DER. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

export interface TlsCertificate {
  /** PEM. */
  key: string
  cert: string
}

const VALID_DAYS = 365
const DAY_MS = 86_400_000
const LINE = 64
const SERIAL_BYTES = 8
const DNS_NAME = 0x82
const IP_ADDRESS = 0x87

/** DER type tags. */
const BOOLEAN = 0x01
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const OBJECT_ID = 0x06
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const SEQUENCE = 0x30
const SET = 0x31
const VERSION = 0xa0
const EXTENSIONS = 0xa3

const ECDSA_WITH_SHA256 = der(SEQUENCE, der(OBJECT_ID, Buffer.from('2a8648ce3d040302', 'hex')))
const COMMON_NAME = der(OBJECT_ID, Buffer.from('550403', 'hex'))
const SUBJECT_ALT_NAME = der(OBJECT_ID, Buffer.from('551d11', 'hex'))
const BASIC_CONSTRAINTS = der(OBJECT_ID, Buffer.from('551d13', 'hex'))
const TRUE = der(BOOLEAN, Buffer.from([0xff]))

export function createTlsCertificate(now = Date.now()): TlsCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(SERIAL_BYTES)])
  // Clients look up a certificate by its name, and may trust several.
  const commonName = Buffer.from(`simulated WhatsApp ${serial.toString('hex')}`)
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, commonName))))
  const body = der(
    SEQUENCE,
    der(VERSION, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    ECDSA_WITH_SHA256,
    name,
    der(SEQUENCE, time(now - DAY_MS), time(now + VALID_DAYS * DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXTENSIONS, der(SEQUENCE, authority(), names())),
  )
  const signature = sign('sha256', body, privateKey)
  const certificate = der(SEQUENCE, body, ECDSA_WITH_SHA256, der(BIT_STRING, Buffer.from([0]), signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: pem(certificate),
  }
}

/** Marks it as a certificate authority, so a client can be configured to trust it. */
function authority(): Buffer {
  return der(SEQUENCE, BASIC_CONSTRAINTS, TRUE, der(OCTET_STRING, der(SEQUENCE, TRUE)))
}

function names(): Buffer {
  const loopback6 = Buffer.alloc(16)
  loopback6[15] = 1
  const all = [
    der(DNS_NAME, Buffer.from('localhost')),
    der(IP_ADDRESS, Buffer.from([127, 0, 0, 1])),
    der(IP_ADDRESS, loopback6),
  ]
  return der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, der(SEQUENCE, ...all)))
}

function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/\D/g, '').slice(2, 14)
  return der(UTC_TIME, Buffer.from(`${digits}Z`))
}

function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content])
  if (content.length < 0x100) return Buffer.concat([Buffer.from([tag, 0x81, content.length]), content])
  return Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content])
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(new RegExp(`.{1,${LINE}}`, 'g')) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
