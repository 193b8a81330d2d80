import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { ownBytes } from '../../kit/own-bytes.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** The first byte of every envelope, which consists of version | nonce | ciphertext | tag. */
const VERSION = 1
const HEADER_BYTES = 1 + NONCE_BYTES
/** Size of the cache of derived keys. Deriving a key takes microseconds. */
const MAX_KEYS = 10_000

/**
 * Encrypts secrets at rest (contract §6). Every scope, usually an instance, has its own key, derived from the master
 * key. The number of random nonces per key therefore stays far below the limit of AES-GCM. The place of the row is
 * authenticated, so a value that was copied into another row does not open.
 */
export class Sealing {
  readonly #masterKey: Uint8Array
  readonly #keys = new BoundedMap<string, KeyObject>(MAX_KEYS)

  /** @param masterKey 32 bytes */
  constructor(masterKey: Uint8Array) {
    if (masterKey.length !== KEY_BYTES) throw new RangeError(`The master key must be ${KEY_BYTES} bytes.`)
    this.#masterKey = masterKey
  }

  seal(scope: string, place: string, plain: Uint8Array): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key(scope), nonce).setAAD(Buffer.from(place))
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  /** @throws if the bytes were sealed under another key or for another place, or were changed */
  open(scope: string, place: string, sealed: Uint8Array): Buffer {
    if (sealed[0] !== VERSION) throw new Error(`Unknown version of a sealed value: ${sealed[0]}.`)
    const tagAt = sealed.length - TAG_BYTES
    const decipher = createDecipheriv(CIPHER, this.#key(scope), sealed.subarray(1, HEADER_BYTES), {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(Buffer.from(place)).setAuthTag(sealed.subarray(tagAt))
    return ownBytes(Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, tagAt)), decipher.final()]))
  }

  /** Returns null where `open` throws. */
  tryOpen(scope: string, place: string, sealed: Uint8Array): Buffer | null {
    try {
      return this.open(scope, place, sealed)
    } catch {
      return null
    }
  }

  #key(scope: string): KeyObject {
    const known = this.#keys.get(scope)
    if (known !== undefined) return known
    const bytes = hkdfSync('sha256', this.#masterKey, '', `pombal:${scope}`, KEY_BYTES)
    const key = createSecretKey(new Uint8Array(bytes))
    this.#keys.set(scope, key)
    return key
  }
}

// A sealed value authenticates the identity of its row: a value that was copied into another row does not open.

/** The place of an endpoint's current and previous secrets. Those of the default endpoint are in the instance's row. */
export function endpointSecretPlace(instanceId: InstanceId, id: EndpointId): string {
  return id === DEFAULT_ENDPOINT ? `instances:${instanceId}:webhook_secret` : `endpoints:${instanceId}:${id}:secret`
}

export function credentialPlace(instanceId: InstanceId, type: string, id: string): string {
  return `credentials:${instanceId}:${type}:${id}`
}

export function passkeyAnswerPlace(instanceId: InstanceId): string {
  return `passkey_answers:${instanceId}:answer`
}

export function mediaKeyPlace(instanceId: InstanceId, fileId: string): string {
  return `media_files:${instanceId}:${fileId}:sealed_key`
}

export function mediaSourcePlace(instanceId: InstanceId, mediaId: string): string {
  return `media_downloads:${instanceId}:${mediaId}:sealed_source`
}

export function proxyPlace(instanceId: InstanceId): string {
  return `connections:${instanceId}:sealed_proxy`
}

/** The scope of the secrets of operator endpoints, which belong to no instance. */
export const OPERATOR_SCOPE = 'operator_endpoints'

export function operatorSecretPlace(id: EndpointId): string {
  return `operator_endpoints:${id}:secret`
}

/** The scope of the targets' addresses. Alerts belong to no instance. */
export const ALERTS_SCOPE = 'alerts'

export function alertAddressPlace(targetId: string): string {
  return `alert_targets:${targetId}:address`
}
