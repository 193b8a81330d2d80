import { proto } from 'baileys/WAProto/index.js'
import { generateKeyPair, type KeyPair, sign, typed } from '../signal/keys.ts'

/** Baileys accepts only this number as the issuer of the intermediate certificate. */
const ROOT_SERIAL = 0
const INTERMEDIATE_SERIAL = 1
const LEAF_SERIAL = 2

/** The server's half of the handshake: its static key, certified by a chain under this network's own root. */
export interface ServerIdentity {
  staticKey: KeyPair
  certificateChain: Buffer
  /** The root that a client must trust instead of WhatsApp's if it checks the chain. */
  rootKey: Buffer
}

export function createServerIdentity(): ServerIdentity {
  const root = generateKeyPair()
  const intermediate = generateKeyPair()
  const staticKey = generateKeyPair()
  const chain = proto.CertChain.encode({
    intermediate: certificate(INTERMEDIATE_SERIAL, ROOT_SERIAL, intermediate.publicKey, root),
    leaf: certificate(LEAF_SERIAL, INTERMEDIATE_SERIAL, staticKey.publicKey, intermediate),
  }).finish()
  return { staticKey, certificateChain: Buffer.from(chain), rootKey: typed(root.publicKey) }
}

function certificate(serial: number, issuerSerial: number, key: Buffer, issuer: KeyPair) {
  const details = proto.CertChain.NoiseCertificate.Details.encode({ serial, issuerSerial, key }).finish()
  return { details, signature: sign(issuer.privateKey, details) }
}
