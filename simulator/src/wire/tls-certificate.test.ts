import { X509Certificate } from 'node:crypto'
import { expect, it } from 'vitest'
import { createTlsCertificate } from './tls-certificate.ts'

it('is a self-signed certificate for this machine, valid from yesterday until a year from now', () => {
  const now = Date.UTC(2030, 0, 31)
  const { cert, key } = createTlsCertificate(now)
  const certificate = new X509Certificate(cert)
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect(certificate.ca).toBe(true)
  expect(certificate.checkHost('localhost')).toBe('localhost')
  expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1')
  expect(certificate.checkIP('::1')).toBeDefined()
  expect(certificate.validFromDate).toEqual(new Date(now - 86_400_000))
  expect(certificate.validToDate).toEqual(new Date(now + 365 * 86_400_000))
  expect(key).toContain('PRIVATE KEY')
})
