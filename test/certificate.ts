import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { createTlsCertificate, type TlsCertificate } from '../simulator/src/wire/tls-certificate.ts'

const DAY_MS = 86_400_000

/** Self-signed, for localhost, 127.0.0.1 and ::1. It is valid for a year from yesterday, or from `days` days later. */
export function createCertificate(days = 0): TlsCertificate {
  return createTlsCertificate(Date.now() + days * DAY_MS)
}

/** Makes this process trust the certificates in addition to the system's. @returns a function that undoes it */
export function trust(...certificates: TlsCertificate[]): () => void {
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, ...certificates.map(({ cert }) => cert)])
  return () => setDefaultCACertificates(before)
}
