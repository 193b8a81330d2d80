import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{src,simulator,test}/**/*.test.ts'],
    globalSetup: ['test/postgres-setup.ts'],
    // Flows start whole services and real networks on loopback; on two busy cores that takes its time.
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
