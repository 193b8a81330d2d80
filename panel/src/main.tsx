import '@fontsource-variable/figtree/wght.css'
import '@fontsource-variable/jetbrains-mono/wght.css'
import '@mantine/core/styles.layer.css'
import './global.css'
import { setNonce } from 'get-nonce'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { loadFirstWords } from './i18n/i18n.tsx'

/** The nonce that the service put into the page. It permits the page's own styles. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''
setNonce(nonce)

const firstWords = await loadFirstWords()
createRoot(document.getElementById('root')!).render(<App nonce={nonce} firstWords={firstWords} />)
