import { createReadStream, createWriteStream, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createBrotliCompress } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { guides } from './guides/plugin.ts'

const COMPRESSIBLE = /\.(js|css|svg)$/

/** Writes a compressed `.br` file for each text asset, so that the service need not compress them. */
function brotliAssets(): Plugin {
  return {
    name: 'brotli-assets',
    apply: 'build',
    async writeBundle() {
      const folder = join(import.meta.dirname, 'dist/assets')
      const names = readdirSync(folder).filter(name => COMPRESSIBLE.test(name))
      await Promise.all(names.map(name => compress(join(folder, name))))
    },
  }
}

function compress(file: string): Promise<void> {
  const brotli = createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } })
  return pipeline(createReadStream(file), brotli, createWriteStream(`${file}.br`))
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), guides(), brotliAssets()],
  build: {
    target: 'es2023',
    // The page's policy allows neither inline script nor data: addresses for it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    // Code that several pages share is in one file: dozens of small files compress worse.
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: 'shared', test: /node_modules|src\/(components|text)/, minShareCount: 2 }] },
      },
    },
  },
  // `npm run dev -w panel` beside a running service.
  server: { proxy: { '/admin': 'http://127.0.0.1:3000' } },
})
