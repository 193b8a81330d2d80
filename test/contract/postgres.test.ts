import { describe, inject } from 'vitest'
import { createPostgresHarness } from './harness.ts'
import { storeContract } from './suite.ts'

describe('the store on PostgreSQL', () => storeContract(() => createPostgresHarness(inject('postgresUrl'))))
