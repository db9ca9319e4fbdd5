import '@fontsource-variable/inter/wght.css';
import './main.css';
import { createRoot } from 'react-dom/client';
import { load, session } from './session.js';
import { Chat } from './chat.jsx';

const id = session();
const messages = await load(id);
createRoot(document.getElementById('root')).render(<Chat id={id} messages={messages} />);
